from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any, cast

import pytest

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.schema import schema_of
from stormlet.core.tuples import PLAIN, Source, Tuple
from stormlet.model.components import (
    DEFAULT_STREAM,
    BasicBolt,
    BatchBolt,
    Bolt,
    BoltBase,
    Collector,
    Spout,
    SpoutCollector,
    TaskContext,
    To,
    overrides,
)
from stormlet.model.configuration import Configuration

CONTEXT = TaskContext("topology", "split", 3, 1, 2, Configuration())
TUPLE = Tuple[object]("value", Source("lines", DEFAULT_STREAM, 1, schema_of(None)), PLAIN, 0, 0)
NO_OUT = cast("Collector[Any]", None)
NO_SPOUT_OUT = cast("SpoutCollector[Any]", None)


class Silent(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        pass


class Ticking(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        pass

    async def tick(self, out: Collector[int]) -> None:
        pass


class Inheriting(Ticking):
    pass


def test_a_spout_must_define_next_tuple() -> None:
    """The error names the user's class and the signature."""

    class Forgetful(Spout[int]):
        pass

    with pytest.raises(NotImplementedError, match=r"Forgetful must define next_tuple\(self, out\)"):
        Forgetful().next_tuple(NO_SPOUT_OUT)


@pytest.mark.parametrize("base", [Bolt, BasicBolt])
def test_a_bolt_must_define_execute(base: type[Bolt[Any, Any]]) -> None:
    """The error names the user's class and the signature."""
    forgetful = type("Forgetful", (base,), {})
    with pytest.raises(NotImplementedError, match=r"Forgetful must define execute\(self, tup, out\)"):
        forgetful().execute(TUPLE, NO_OUT)


def test_a_batch_bolt_must_define_execute_batch() -> None:
    """The error names the user's class and the signature."""

    class Forgetful(BatchBolt[int, int]):
        pass

    with pytest.raises(NotImplementedError, match=r"Forgetful must define execute_batch\(self, tups, out\)"):
        Forgetful().execute_batch([], NO_OUT)


def test_everything_else_of_a_spout_is_optional() -> None:
    """The defaults do nothing and return nothing to be awaited."""
    spout = Silent()
    failure = Failure(FailureKind.TIMEOUT)
    assert spout.open(CONTEXT, NO_SPOUT_OUT) is None
    assert spout.ack(1) is spout.fail(1, failure) is None
    assert spout.activate() is spout.deactivate() is spout.close() is None


@pytest.mark.parametrize("bolt", [Bolt(), BasicBolt(), BatchBolt()])
def test_everything_else_of_a_bolt_is_optional(bolt: BoltBase[Any, Any]) -> None:
    """The defaults do nothing and return nothing to be awaited."""
    assert bolt.prepare(CONTEXT) is bolt.cleanup() is None
    assert bolt.tick(NO_OUT) is bolt.flush(NO_OUT) is bolt.finish(NO_OUT) is None


def test_the_defaults_of_a_batch() -> None:
    """A hundred members, or one second, in one batch whatever the value."""
    bolt = BatchBolt[str, str]()
    assert (bolt.size, bolt.within) == (100, 1.0)
    assert bolt.key("a") is bolt.key("b") is None


def test_an_output_goes_to_the_default_stream() -> None:
    """Unless ``To`` says otherwise, to no task in particular (law B1)."""
    assert To(5) == To(5, stream="default", task=None)
    assert (To(5, "errors", 7).stream, To(5, "errors", 7).task) == ("errors", 7)


def test_an_output_may_name_its_type() -> None:
    """``To[int](5)``, as type checkers like it, is ``To(5)``, and neither changes any more."""
    assert To[int](5, "errors") == To(5, "errors")
    with pytest.raises(AttributeError):
        To(5).value = 6  # type: ignore[misc]


def test_a_context_cannot_be_changed() -> None:
    """What a task knows of itself stays so."""
    with pytest.raises(FrozenInstanceError):
        CONTEXT.task = 4  # type: ignore[misc]


@pytest.mark.parametrize("component", [Ticking, Ticking(), Inheriting, Inheriting()])
def test_a_method_of_its_own(component: object) -> None:
    """A class and its instance define what the class or one of its bases does (law B5)."""
    assert overrides(component, BoltBase, "tick")
    assert not overrides(component, BoltBase, "finish")


def test_the_defaults_are_nobodys_own() -> None:
    """The interfaces themselves define no ``tick``."""
    assert not any(overrides(base, BoltBase, "tick") for base in (Bolt, BasicBolt, BatchBolt))
    assert not overrides(Silent, Spout, "ack")
    assert overrides(Silent, Spout, "next_tuple")
