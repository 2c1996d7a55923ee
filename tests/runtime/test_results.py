"""What is remembered of the results of function bolts."""

from __future__ import annotations

from collections.abc import Generator

from stormlet.runtime.usercode import MOST_TYPES, Kinds, ResultKind


def test_types_that_are_made_at_run_time_are_forgotten() -> None:
    """There are never more than a thousand, and each is told apart as before."""
    kinds = Kinds("bolt")
    for number in range(3 * MOST_TYPES):
        assert kinds[type(f"Value{number}", (), {})] is ResultKind.VALUE
        assert kinds[Generator] is ResultKind.ITERATOR
        assert len(kinds) <= MOST_TYPES
