"""What is remembered of the results of function bolts."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from stormlet import BasicBolt
from stormlet.errors import MistakenFactory
from stormlet.runtime.usercode import MOST_TYPES, Kinds, ResultKind


def test_types_that_are_made_at_run_time_are_forgotten() -> None:
    """There are never more than a thousand, and each is told apart as before."""
    kinds = Kinds("bolt")
    for number in range(3 * MOST_TYPES):
        assert kinds[type(f"Value{number}", (), {})] is ResultKind.VALUE
        assert kinds[Generator] is ResultKind.ITERATOR
        assert len(kinds) <= MOST_TYPES


class Made(BasicBolt[int, None]):
    """Made for each value instead of for each task."""


def test_a_function_that_makes_bolts_is_a_mistaken_factory() -> None:
    """It has a parameter, so that it was called with a value; the way out is named."""
    kinds, said = Kinds("bolt"), r"bolt 'bolt' .* makes a bolt, Made: .* functools.partial\(Made, ...\)"
    with pytest.raises(MistakenFactory, match=said):
        kinds[Made]  # the type of an instance
    assert kinds[type(Made)] is ResultKind.CLASS
    with pytest.raises(MistakenFactory, match=said):
        kinds.check_class(Made)
