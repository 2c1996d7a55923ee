"""What the thread of a consumer has read ahead: in order, bounded, and without what is paused."""

from __future__ import annotations

from stormlet.connect.kafka.ahead import AHEAD, AHEAD_BYTES, Ahead
from stormlet.connect.session import Delivery
from stormlet.core.settlement.prefix import Prefix

STUCK, OTHER = Prefix("events[0]"), Prefix("events[1]")


def read(ahead: Ahead, *numbers: int, size: int = 1) -> None:
    """Even ones are of the partition that will be stuck."""
    ahead.add([Delivery(body=b"x" * size, place=(STUCK, OTHER)[each % 2], position=each) for each in numbers])


def taken(ahead: Ahead, most: int = 100) -> list[int]:
    found = list[int]()
    while some := ahead.take(most):
        assert len(some) <= most
        found += [each.position for each in some]
    return found


def test_all_is_taken_in_its_order() -> None:
    """In whatever parts it is asked for."""
    ahead = Ahead()
    read(ahead, 1, 2, 3, 4, 5)
    read(ahead, 6)
    assert len(ahead) == 6
    assert (taken(ahead, most=2), len(ahead)) == ([1, 2, 3, 4, 5, 6], 0)


def test_what_is_paused_waits_and_comes_before_what_is_read_later() -> None:
    """Others go on, and no partition changes its order."""
    ahead = Ahead()
    read(ahead, 1, 2, 3)
    ahead.pause([STUCK])
    read(ahead, 4, 5)
    assert taken(ahead) == [1, 3, 5]
    read(ahead, 6, 7)
    ahead.resume([STUCK])
    assert taken(ahead) == [2, 4, 6, 7]


def test_what_is_taken_away_does_not_come_back() -> None:
    """Its next owner has it."""
    ahead = Ahead()
    read(ahead, 2, 3)
    ahead.pause([STUCK])
    assert taken(ahead) == [3]
    ahead.forget([STUCK])
    ahead.resume([STUCK])
    assert (taken(ahead), len(ahead)) == ([], 0)


def test_large_messages_are_read_ahead_in_smaller_numbers() -> None:
    """Both the number and the bytes are bounded."""
    ahead = Ahead()
    assert (ahead.most, ahead.has_room) == (AHEAD, True)
    read(ahead, *range(8), size=AHEAD_BYTES // 4)
    assert (ahead.most, ahead.has_room) == (4, False)
    taken(ahead)
    read(ahead, 1, size=2 * AHEAD_BYTES)
    assert (ahead.most, ahead.has_room) == (1, True)
