"""The delivery tags of a channel."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stormlet.connect.rabbitmq.tags import Tags


class Channel:
    """A channel as RabbitMQ keeps it: it closes for a tag that it does not have any more."""

    def __init__(self, delivered: int) -> None:
        self.unacked = list(range(1, delivered + 1))

    def acknowledge(self, tag: int, multiple: bool) -> None:
        assert tag in self.unacked, f"unknown delivery tag {tag}"
        self.unacked = [each for each in self.unacked if each > tag or (each < tag and not multiple)]


def test_what_is_settled_without_a_gap_is_one_acknowledgement() -> None:
    """All up to the last one; what lies behind an open one is acknowledged alone."""
    tags = Tags()
    tags.delivered = 6
    assert tags.acknowledgements(tags.settle([2, 1, 3, 6])) == [(3, True), (6, False)]


def test_what_was_acknowledged_is_not_again() -> None:
    """The gap is closed by one that is for all up to it, but never with a tag that the broker has forgotten."""
    tags = Tags()
    tags.delivered = 3
    assert tags.acknowledgements(tags.settle([2, 3])) == [(2, False), (3, False)]
    assert tags.acknowledgements(tags.settle([1])) == [(1, True)]


def test_a_tag_settles_once() -> None:
    """Also if it is given twice at a time, and when all up to it are settled."""
    tags = Tags()
    tags.delivered = 3
    assert tags.settle([1, 1, 3]) == [1, 3]
    assert tags.settle([1, 2, 3]) == [2]
    assert tags.open == 0


@given(st.permutations(range(1, 25)), st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=24))
def test_the_broker_knows_what_is_settled_and_no_more(
    order: list[int], pieces: list[tuple[int, bool]]
) -> None:
    """In any order and in any pieces, some of which are rejected one by one."""
    tags, channel = Tags(), Channel(24)
    tags.delivered = 24
    for size, rejects in pieces:
        piece, order = order[:size], order[size:]
        fresh = tags.settle(piece)
        for tag, multiple in [(tag, False) for tag in fresh] if rejects else tags.acknowledgements(fresh):
            channel.acknowledge(tag, multiple)
        assert channel.unacked == sorted(order)
        assert tags.open == len(order)
