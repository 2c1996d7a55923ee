"""The names of a function's parameters, by which the state of a function is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from stormlet.model.signatures import parameter_names


def counted(word: str, total: int, *, more: int = 0) -> str:
    """A function of the value and its state."""
    return word * (total + more)


def test_they_are_those_that_can_be_given_by_position() -> None:
    """The second one names the state (law K1)."""
    assert parameter_names(counted) == ("word", "total")


def test_of_some_functions_python_does_not_know_them() -> None:
    """They are written in C."""
    assert parameter_names(cast("Callable[..., object]", iter)) is None
