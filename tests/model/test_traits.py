from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from stormlet.model.components import BasicBolt, Spout
from stormlet.model.traits import BoltTraits, SpoutTraits, bolt_traits, spout_traits


class Lines(Spout[int]):
    """Would emit the same again in a second task."""

    single_task = True
    most_pending = 64


def lines() -> Lines:
    return Lines()


class Single:
    """An object that makes spouts and declares their traits."""

    single_task = True
    most_pending = 64

    def __call__(self) -> Spout[int]:
        return Spout()


def without_address(value: object) -> str:
    return getattr(value, "__name__", type(value).__name__)


@pytest.mark.parametrize(
    "source", [Lines, partial(Lines), lines, partial(lines), Single()], ids=without_address
)
def test_traits_are_those_of_the_class_or_of_what_makes_instances(source: object) -> None:
    """Before there is an instance, and whichever way the class is named (laws S3, S8)."""
    assert spout_traits(source) == SpoutTraits(single_task=True, most_pending=64)


@pytest.mark.parametrize("logic", [BasicBolt, lambda value: value, None], ids=without_address)
def test_a_component_that_declares_nothing_has_the_defaults(logic: object) -> None:
    """Functions and other objects without these attributes included."""
    assert (bolt_traits(logic), spout_traits(logic)) == (BoltTraits(), SpoutTraits())


class Mistaken(BasicBolt[Any, None]):
    """Declares traits of other types."""

    needs_acks = "yes"  # type: ignore[assignment]
    least_pending = None  # type: ignore[assignment]
    keeps_state = 1  # type: ignore[assignment]
    epochs_advice = 5


def test_a_trait_of_another_type_counts_as_absent() -> None:
    """A mock answers for every attribute; it has no traits by that."""
    assert bolt_traits(Mistaken) == BoltTraits()
