"""A worker of whose executions an observer hears: in which order, and whatever the inner worker does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, cast

import pytest

from stormlet.core.tuples import PLAIN, Tuple, plain_tuple
from stormlet.runtime.bolt.functions import FunctionWorker
from stormlet.runtime.bolt.threads import ThreadWorker
from stormlet.runtime.bolt.worker import Raised, Worker
from stormlet.runtime.bolt.wrapped import ObservedWorker, observed
from tests.runtime.bolt.test_workers import SOURCE, wiring

pytestmark = pytest.mark.asyncio


class Notes:
    """Notes what it hears of the tree with root 1."""

    def __init__(self) -> None:
        self.trees = {1}
        self.heard: list[str] = []

    def begin(self, tups: Sequence[Tuple[Any]]) -> None:
        self.heard += [f"begin {each.value}" for each in tups]

    def end(self, tups: Sequence[Tuple[Any]], waited: float = 0.0) -> None:
        self.heard += [f"end {each.value}" for each in tups]


def inputs(*values: int, root: int = 1) -> list[Tuple[Any]]:
    return [plain_tuple(value, SOURCE, PLAIN, root, value) for value in values]


def check(value: int) -> None:
    if value == 2:
        raise LookupError(value)
    if value == 3:
        raise SystemExit(value)


async def test_executions_are_noted_one_by_one() -> None:
    """Each ends before the next one begins, although the inner worker takes them all at once."""
    notes = Notes()
    assert observed(FunctionWorker(wiring(), check), notes).work(iter(inputs(4, 5))) is None
    assert notes.heard == ["begin 4", "end 4", "begin 5", "end 5"]


async def test_inputs_of_other_trees_are_passed_over() -> None:
    """Nothing is noted of them, and they are executed all the same."""
    notes, worker = Notes(), FunctionWorker(wiring(), check)
    tups = [*inputs(4, root=2), *inputs(5)]
    assert observed(worker, notes).work(iter(tups)) is None
    assert notes.heard == ["begin 5", "end 5"]
    notes.trees = set()
    assert observed(worker, notes).work(iter(inputs(6))) is None
    assert notes.heard == ["begin 5", "end 5"]


async def test_an_execution_ends_with_what_it_raises() -> None:
    """Also if that is more than an exception of the user's."""
    notes = Notes()
    worker = observed(FunctionWorker(wiring(), check), notes)
    assert isinstance(worker.work(iter(inputs(2, 4))), Raised)
    with pytest.raises(SystemExit):
        worker.work(iter(inputs(3, 4)))
    assert notes.heard == ["begin 2", "end 2", "begin 3", "end 3"]


async def test_the_inner_worker_has_words_for_what_it_raises() -> None:
    """As one with state has for a key that cannot be looked up."""

    class Wordy(FunctionWorker):
        def in_words(self, raised: Raised) -> Exception:
            return LookupError("in words")

    worker = observed(Wordy(wiring(), check), Notes())
    raised = worker.work(iter(inputs(2)))
    assert isinstance(raised, Raised)
    assert str(worker.in_words(raised)) == "in words"


async def test_what_a_thread_is_handed_is_executed_together() -> None:
    """Its chunk and the number of its calls are those of the inner worker."""
    notes, inner = Notes(), ThreadWorker(FunctionWorker(wiring(), check), 1)
    worker = observed(inner, notes)
    pause = cast("Awaitable[Raised | None]", worker.work(iter(inputs(4, 5))))
    await asyncio.sleep(0)
    assert notes.heard == ["begin 4", "begin 5"]
    assert await pause is None
    assert notes.heard == ["begin 4", "begin 5", "end 4", "end 5"]
    assert (worker.chunk, worker.calling) == (inner.chunk, inner.calling)
    await cast("Awaitable[None]", worker.cleanup())


async def test_there_is_one_observer_at_most() -> None:
    """Another one takes its place, and none leaves the bare worker."""
    bare: Worker = FunctionWorker(wiring(), check)
    around = observed(observed(bare, Notes()), Notes())
    assert isinstance(around, ObservedWorker)
    assert around.inner is bare
    assert observed(around, None) is bare
    assert observed(bare, None) is bare
