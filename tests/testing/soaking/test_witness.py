"""A set that remembers the last things."""

from __future__ import annotations

from stormlet.testing.soaking.witness import Recent


def test_the_last_things_are_remembered() -> None:
    """As many as it was told, and at most twice as many."""
    recent = Recent[int](10)
    for number in range(1000):
        recent.add(number)
        assert all(each in recent for each in range(max(number - 9, 0), number + 1))
        assert sum(each in recent for each in range(1000)) <= 22


def test_things_can_be_forgotten() -> None:
    """Whether they came lately or before."""
    recent = Recent[int](1)
    for number in range(3):
        recent.add(number)
    for number in range(3):
        recent.discard(number)
    assert not any(number in recent for number in range(3))
