"""The state of bolts goes from one epoch of a stream to the next."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
import pytest

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Topology, TopologyCrashed, Tuple
from stormlet.model.components import TaskContext
from stormlet.model.configuration import Configuration
from stormlet.spark.engine.partition.rows import Row
from stormlet.spark.engine.partition.states import BoltStates
from tests.spark.engine.twin import Twin, twin

SIZE = 1 << 22
EPOCHS = (["a b a", "b"], ["c a"], ["b b c", "a", "c"])
TOTALS = {"a": 4, "b": 4, "c": 3}


class Word(msgspec.Struct, frozen=True):
    """A word."""

    text: str


class Seen(BasicBolt[Word, str]):
    """Emits each word with the number of times that it has come."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.counts[tup.value.text] += 1
        out.emit(f"{tup.value.text} {self.counts[tup.value.text]}")


class Connected(Seen):
    """Has a connection, which cannot be pickled."""

    def prepare(self, context: TaskContext) -> None:
        self.connection = Lock()


class Shared(Seen):
    """Has two names for one thing."""

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.last = self.counts
        self.last[tup.value.text] += 1
        out.emit(f"{tup.value.text} {self.counts[tup.value.text]}")


class Slotted(BasicBolt[Word, str]):
    """Has slots."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.counts[tup.value.text] += 1
        out.emit(f"{tup.value.text} {self.counts[tup.value.text]}")


class Says(Seen):
    """Says by itself what its state is."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()

    def __getstate__(self) -> list[tuple[str, int]]:
        return list(self.counts.items())

    def __setstate__(self, state: list[tuple[str, int]]) -> None:
        self.counts = Counter(dict(state))


class InBatches(BatchBolt[Word, str]):
    """Counts two words at a time."""

    size = 2

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute_batch(self, tups: Sequence[Tuple[Word]], out: Collector[str]) -> None:
        for tup in tups:
            self.counts[tup.value.text] += 1
            out.emit(f"{tup.value.text} {self.counts[tup.value.text]}", anchors=[tup])


class Holds(Bolt[Word, str]):
    """Settles its inputs when it is flushed."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.held: list[Tuple[Word]] = []

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.held.append(tup)

    def flush(self, out: Collector[str]) -> None:
        for tup in self.held:
            self.counts[tup.value.text] += 1
            out.emit(f"{tup.value.text} {self.counts[tup.value.text]}", anchors=[tup])
            out.ack(tup)
        self.held = []


class Keeps(Bolt[Word, str]):
    """Keeps its inputs beyond the flush."""

    def __init__(self) -> None:
        self.held: list[Tuple[Word]] = []

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.held.append(tup)


class Loses(Bolt[Word, str]):
    """Settles nothing, and keeps its inputs where no state is."""

    held: ClassVar[list[Tuple[Word]]] = []

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.held.append(tup)


@dataclass(frozen=True)
class Frozen(BasicBolt[Word, str]):
    """Has attributes that cannot be set."""

    counts: Counter[str] = field(default_factory=Counter[str])

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.counts[tup.value.text] += 1
        out.emit(f"{tup.value.text} {self.counts[tup.value.text]}")


class Ends(Seen):
    """Would say that it has finished."""

    def finish(self, out: Collector[str]) -> None:
        out.emit("finished")


class Stepping(Seen):
    """Counts in steps."""

    def __init__(self, step: int = 1) -> None:
        super().__init__()
        self.step = step

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.counts[tup.value.text] += self.step
        out.emit(f"{tup.value.text} {self.counts[tup.value.text]}")


class Forgets(Seen):
    """Says that it has no state."""

    def __getstate__(self) -> None:
        return None


class Stumbles(Seen):
    """Counts, and then fails the first time."""

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        super().execute(tup, out)
        if tup.attempt == 1:
            raise ValueError(tup.value.text)


class Shelf:
    """Shared by all bolts of a partition."""


class Attached(Seen):
    """Keeps its context, also within its state, and what it shares."""

    def prepare(self, context: TaskContext) -> None:
        self.live = context
        self.context = context
        self.shared = context.shared
        self.shelf = context.shared.one(Shelf)
        self.known: dict[str, object] = {}

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        if self.known:  # by the epoch before
            assert self.known["context"] is self.context
            assert self.known["shared"] is self.context.shared
        super().execute(tup, out)
        self.known = {"context": self.context, "shared": self.shared}

    def flush(self, out: Collector[str]) -> None:
        assert self.context is self.live
        assert self.shared is self.live.shared
        assert self.shelf is self.live.shared.one(Shelf)


class Heavy(Seen):
    """Makes something large."""

    def prepare(self, context: TaskContext) -> None:
        self.model = bytes(SIZE)


class LateLock(Seen):
    """Gets something that cannot be pickled while it works."""

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        self.lock = Lock()


class EarlyLock(Seen):
    """Is made with something that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()


class Dies(Seen):
    """Dies of the first attempt at a word."""

    def execute(self, tup: Tuple[Word], out: Collector[str]) -> None:
        if tup.attempt == 1:
            raise ValueError(tup.value.text)
        super().execute(tup, out)


def split(line: str) -> Iterator[Word]:
    yield from map(Word, line.split())


def words(bolt: Callable[[], Any] = Seen, parallelism: int = 3, **options: Any) -> Topology:
    topology = Topology("words")
    lines = topology.spout("lines", [""], outputs=str)
    by = topology.bolt("split", split, lines.shuffle(), outputs=Word).fields("text")
    seen = topology.bolt("seen", bolt, by, outputs=str, parallelism=parallelism, **options)
    topology.bolt("last", Keep, seen.global_(), outputs=str)
    return topology


class Keep(BasicBolt[str, str]):
    """Runs in the driver, and emits all that it has ever taken."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.taken.append(tup.value)
        out.emit(" ".join(self.taken))


def in_epochs(topology: Topology, *epochs: Sequence[str], spouts: Sequence[int] = (2, 1, 3)) -> list[Twin]:
    """Run one epoch after another, each of which has another number of partitions."""
    runs, states = list[Twin](), list[Row]()
    for epoch, partitions in zip(epochs, spouts, strict=False):
        run = twin(topology, {"lines": epoch}, spouts=partitions, states=states)
        assert not run.differences
        runs.append(run)
        states = run.left
    return runs


def counts(runs: Sequence[Twin]) -> dict[str, int]:
    """The last count of each word."""
    pairs = (text.split() for run in runs for text in run.emitted("seen"))
    return {word: int(count) for word, count in pairs}


@pytest.mark.parametrize("bolt", [Seen, Connected, Shared, Slotted, Says, InBatches, Holds, Ends, Frozen])
def test_a_count_goes_on(bolt: Callable[[], Any]) -> None:
    """Whatever the bolt is like, and however many partitions read."""
    runs = in_epochs(words(bolt), *EPOCHS)
    assert counts(runs) == TOTALS
    assert sum(len(run.emitted("seen")) for run in runs) == sum(TOTALS.values())


def test_a_bolt_in_the_driver_keeps_its_state() -> None:
    """As any other."""
    runs = in_epochs(words(), *EPOCHS)
    assert len(runs[-1].emitted("last")[-1].split()) == 2 * sum(TOTALS.values())


def test_a_class_behind_a_shuffle_has_tasks_of_its_own() -> None:
    """The partitions that read are others in each epoch."""
    topology = Topology("words")
    lines = topology.spout("lines", [""], outputs=str)
    topology.bolt(
        "seen", Seen, topology.bolt("split", split, lines.shuffle(), outputs=Word).shuffle(), outputs=str
    )
    assert counts(in_epochs(topology, *EPOCHS)) == TOTALS


def test_an_argument_of_the_constructor_is_no_state() -> None:
    """A new version of the program may change it."""
    (first,) = in_epochs(words(), EPOCHS[0])
    second = twin(words(partial(Stepping, 10)), {"lines": ["a"]}, states=first.left)
    assert second.emitted("seen") == ["a 12"]


def test_a_bolt_may_say_that_it_has_no_state() -> None:
    """Each epoch begins as the first one."""
    assert counts(in_epochs(words(Forgets), ["a a"], ["a"])) == {"a": 1}


def test_what_an_input_has_changed_before_it_fails_stays() -> None:
    """As in process: the instance goes on, and counts it again."""
    assert counts(in_epochs(words(Stumbles), ["a"], ["a"])) == {"a": 4}


def test_a_state_that_nobody_has_touched_is_written_again() -> None:
    """An epoch leaves all states, so that only the last one is needed."""
    first, second = in_epochs(words(), EPOCHS[0], [])
    assert first.left
    assert [each.payload for each in second.left] == [each.payload for each in first.left]


def test_nothing_is_left_where_nothing_has_changed() -> None:
    """A connection is no state."""
    (run,) = in_epochs(words(Connected), [])
    assert not run.left


def test_a_function_has_no_state() -> None:
    """What it has gathered in a closure stays in its process."""
    gathered: list[Word] = []
    topology = Topology("words")
    lines = topology.spout("lines", [""], outputs=str)
    words = topology.bolt("split", split, lines.shuffle(), outputs=Word)
    topology.bolt("gather", gathered.append, words.fields("text"))
    (run,) = in_epochs(topology, ["a b"])
    assert gathered
    assert not run.left


def test_the_context_is_no_state() -> None:
    """Nor is what it shares: each epoch has its own, wherever a bolt keeps them."""
    runs = in_epochs(words(Attached), *EPOCHS)
    assert counts(runs) == TOTALS
    assert not any(b"Shelf" in row.payload or b"topology" in row.payload for run in runs for row in run.left)


def test_a_bolt_that_keeps_nothing_but_its_context_leaves_nothing() -> None:
    """As if it did not."""
    (run,) = in_epochs(words(Attached), [])
    assert not run.left


def test_no_copy_is_kept_of_what_prepare_makes() -> None:
    """It may be a model of half a gigabyte."""
    states = BoltStates()
    plan: Any = SimpleNamespace(component="heavy")
    bolt, context = Heavy(), TaskContext("words", "heavy", 1, 0, 1, Configuration())
    states.instance(plan, bolt)
    bolt.prepare(context)
    tracemalloc.start()
    states.prepared({"heavy": context})
    before, _ = tracemalloc.get_traced_memory()
    assert not states.take()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert max(before, most) < SIZE / 2


@pytest.mark.parametrize("change", [b"", bytes(SIZE + 1), bytes(SIZE - 1) + b"x", b"x" + bytes(SIZE - 1)])
def test_a_change_of_something_large_is_state(change: bytes) -> None:
    """Be it shorter, longer, or of the same length."""
    states = BoltStates()
    plan: Any = SimpleNamespace(component="heavy")
    bolt, context = Heavy(), TaskContext("words", "heavy", 1, 0, 1, Configuration())
    states.instance(plan, bolt)
    bolt.prepare(context)
    states.prepared({"heavy": context})
    bolt.model = change
    assert states.take()


def test_a_large_state_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell of Spark's holds less than two gigabytes."""
    monkeypatch.setattr("stormlet.spark.engine.partition.rows.STATE_PIECE", 10)
    runs = in_epochs(words(), *EPOCHS)
    assert len(runs[0].left) > 10
    assert counts(runs) == TOTALS


@pytest.mark.parametrize("bolt", [LateLock, EarlyLock])
def test_what_cannot_be_saved_is_named(bolt: Callable[[], Any]) -> None:
    """With the bolt, the attribute and the way out."""
    with pytest.raises(TopologyCrashed, match=r"(?s)seen.*cannot pickle.*'lock'.*make it in prepare"):
        in_epochs(words(bolt), EPOCHS[0])


def test_an_input_is_no_state() -> None:
    """In the next epoch nobody knows it, and to settle it would raise for others."""
    with pytest.raises(TopologyCrashed, match=r"(?s)seen.*an input belongs to its epoch.*'held'"):
        in_epochs(words(Keeps), EPOCHS[0])


def test_an_input_that_nobody_settles_is_held_to_the_end_of_its_epoch() -> None:
    """The bolt has not finished, and never will."""
    (run,) = in_epochs(words(Loses), ["a"])
    (letter,) = run.dead_letters
    assert (letter.failure.reason, letter.failure.holders) == (
        "it was still held when its epoch had ended",
        ("seen",),
    )


def test_a_state_that_does_not_fit_is_named() -> None:
    """With the bolt and the way out."""
    (first,) = in_epochs(words(Says), EPOCHS[0])
    with pytest.raises(TopologyCrashed, match=r"(?s)the state of seen.*let __setstate__ take it"):
        twin(words(), {"lines": ["a"]}, states=first.left)


def test_an_instance_that_dies_takes_its_epoch_along() -> None:
    """Its state is lost, and another instance would go on without it."""
    with pytest.raises(TopologyCrashed, match="seen"):
        in_epochs(words(Dies, on_error="restart"), EPOCHS[0])


@pytest.mark.parametrize("lost", range(2))
def test_a_state_that_is_lost_shows_in_the_ledger(lost: int) -> None:
    """Its hash is missing."""
    (first,) = in_epochs(words(), EPOCHS[0])
    states = [row for place, row in enumerate(first.left) if place != lost]
    second = twin(words(), {"lines": ["a"]}, states=states)
    second.states = first.left
    assert second.differences
