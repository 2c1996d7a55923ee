"""Credit, the order of keys, and the pauses of reconnects."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.settlement.credit import UNLIMITED, Credit
from stormlet.core.settlement.key_order import KeyOrder
from stormlet.core.settlement.reconnects import ReconnectPolicy


@given(st.integers(1, 100), st.integers(0, 120), st.integers(0, 120), st.integers(0, 20))
def test_no_more_is_held_than_may_be_pending(most: int, pending: int, buffered: int, size: int) -> None:
    """What is asked for, buffered and pending stays within the bound; beyond the bytes nothing is asked for."""
    left = Credit(most, 10).left(pending, buffered, size)
    assert left == 0 if size >= 10 else pending + buffered + left <= max(most, pending + buffered)
    assert left >= 0


def test_credit_is_all_that_is_left() -> None:
    """Of 10, with 3 pending and 2 buffered, 5 may be asked for."""
    assert Credit(10, 100).left(3, 2, 99) == 5


def test_without_a_bound_the_buffer_is_bounded() -> None:
    """Whatever is pending."""
    assert Credit(None, 100).left(10**9, 1, 0) == UNLIMITED - 1


def test_a_key_has_one_message_under_way() -> None:
    """The others of the key wait, those of other keys do not."""
    order = KeyOrder[str]()
    assert [order.admit("k", "a"), order.admit("k", "b"), order.admit("j", "c"), len(order)] == [
        True,
        False,
        True,
        1,
    ]
    assert [order.done("k"), order.done("k"), order.done("j")] == ["b", None, None]
    assert order.admit("k", "d")


def test_what_is_gone_no_longer_waits() -> None:
    """The key itself stays under way until its message is done."""
    order = KeyOrder[str]()
    for each in "abca":
        order.admit("k", each)
    assert order.drop(lambda each: each == "a") == ["a"]
    assert [order.done("k"), order.done("k"), order.done("k")] == ["b", "c", None]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=50))
def test_each_key_comes_out_in_its_order(steps: list[tuple[int, bool]]) -> None:
    """And never two of one key at a time."""
    order, running, out = KeyOrder[int](), dict[int, int](), dict[int, list[int]]()
    for number, (key, is_new) in enumerate(steps):
        if is_new and order.admit(key, number):
            assert key not in running
            running[key] = number
            out.setdefault(key, []).append(number)
        elif not is_new and running.pop(key, None) is not None:
            following = order.done(key)
            if following is not None:
                running[key] = following
                out[key].append(following)
    assert all(numbers == sorted(numbers) for numbers in out.values())


def test_pauses_grow_and_are_bounded() -> None:
    """By default from 0.1 s to 10 s, of which half is random."""
    pauses = [ReconnectPolicy().pause(attempt, Random(1)) for attempt in (1, 2, 8, 10_000)]
    assert 0.05 <= pauses[0] <= 0.1
    assert 0.1 <= pauses[1] <= 0.2
    assert all(5 <= each <= 10 for each in pauses[2:])
