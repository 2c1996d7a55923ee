"""The page "The same topology on Spark": what is the same, and what is not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Self, cast

from msgspec.structs import replace

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    FailureKind,
    KeyedBolt,
    Reject,
    TaskContext,
    Topology,
    Tuple,
    Value,
)
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.spark.engine.partition.account import differences
from stormlet.spark.engine.partition.keyed.groups import blob_in
from stormlet.spark.engine.partition.rows import Kind
from stormlet.spark.engine.planning.layout import lay_out
from stormlet.state.memory import MemoryStore
from stormlet.testing import complete, run_simulated
from tests.cast import AckLater, Join, Note, raise_value_error, same, twice
from tests.helpers import run_to_end
from tests.readme.spark_engine_page.whole_runs import run
from tests.spark.engine.twin import Twin, twin


class Where(BasicBolt[Any, None]):
    """Notes the index and the number of its tasks with each value."""

    def __init__(self, seen: list[tuple[Any, int, int]]) -> None:
        self.seen = seen

    def prepare(self, context: TaskContext) -> None:
        self.task = (context.task_index, context.parallelism)

    def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
        self.seen.append((tup.value, *self.task))


def flow(*logics: Any, by: str = "fields", values: Any = range(6), parallelism: int = 2) -> Topology:
    """A spout and bolts in a row, each but the first after an exchange."""
    topology: Any = Topology("flow")
    stream = topology.spout("s", values)
    for place, logic in enumerate(logics):
        grouping = "shuffle" if place == 0 else by
        stream = topology.bolt(f"b{place}", logic, getattr(stream, grouping)(), parallelism=parallelism)
    return topology  # type: ignore[no-any-return]


def test_the_same_topology() -> None:
    """One object, both ways: the same words come to the end as often."""
    seen: list[Any] = []
    topology = flow(twice, same, partial(Note, seen))
    run_simulated(run_to_end(topology))
    there, seen[:] = Counter(seen), []
    assert run(topology).differences() == []
    assert Counter(seen) == there


def test_outcomes() -> None:
    """A message that is rejected behind an exchange is given up, with the reason; all others are acked."""

    def refuse_three(value: int) -> None:
        if value == 3:
            raise Reject("three")

    ran = run(flow(same, refuse_three))
    (given_up,) = ran.given_up
    assert len(given_up.messages) == 1
    assert str(given_up.history[-1].exception) == "three"
    assert ran.differences() == []


def test_ledger() -> None:
    """Whatever happens to a line or a chunk is seen."""
    ran = run(flow(same, same))
    assert ran.differences() == []
    lost, *others = ran.lines
    partitions = ran.cluster.partitions
    assert differences(others, partitions)
    assert differences([lost, lost, *others], partitions)
    assert differences([replace(lost, words=lost.words ^ 1), *others], partitions)
    assert differences([replace(lost, hashes=lost.hashes ^ 1), *others], partitions)


class Tries(BasicBolt[int, int]):
    """Notes the attempts at its inputs, emits each, and fails before the attempt with this number."""

    def __init__(self, tried: list[tuple[str, int]], name: str, until: int) -> None:
        self.tried = tried
        self.name = name
        self.until = until

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.tried.append((self.name, tup.attempt))
        out.emit(tup.value)
        if tup.attempt < self.until:
            raise ValueError(tup.value)


def test_replays() -> None:
    """The bolt before the exchange is executed once; the one that fails, until it does not; one output leaves."""
    tried: list[tuple[str, int]] = []
    ends: list[int] = []
    before, behind = partial(Tries, tried, "before", 1), partial(Tries, tried, "behind", 3)
    ran = run(flow(before, behind, partial(Note, ends), values=[5]))
    assert tried == [("before", 1), ("behind", 1), ("behind", 2), ("behind", 3)]
    assert ends == [5]
    assert list(ran.replayed.values()) == [3]


def test_joins() -> None:
    """Two messages are joined in one stage and given up together in the next."""
    topology: Any = Topology("joins")
    pairs = topology.bolt("join", Join, topology.spout("s", ["a", "b"]).fields(lambda value: 0))
    topology.bolt("refuse", raise_value_error, pairs.fields(lambda value: 0))
    (given_up,) = run(topology).given_up
    assert len(given_up.messages) == 2


def test_order() -> None:
    """Over thousands of values, which take several chunks."""
    seen: list[int] = []
    run(flow(same, partial(Note, seen), values=range(2500), parallelism=1))
    assert seen == list(range(2500))


def test_keys() -> None:
    """Each key has the index that it has in process."""
    seen: list[tuple[Any, int, int]] = []
    topology = flow(same, partial(Where, seen), values=["a", "b", "c", "d", "a"], parallelism=3)
    run_simulated(run_to_end(topology))
    there, seen[:] = sorted(seen), []
    run(topology)
    assert sorted(seen) == there


def test_even() -> None:
    """Fused: each partition keeps its own. Otherwise each producing task goes round."""
    seen: list[tuple[Any, int, int]] = []
    run(flow(partial(Where, seen)), partitions=2)
    assert Counter(index for _, index, _ in seen) == {0: 6, 1: 6}
    assert [index for _, index, _ in seen] == [0] * 6 + [1] * 6
    topology: Any = Topology("round")
    s, more = topology.spout("s", range(6)), topology.spout("more", [])
    behind = topology.bolt("behind", same, more.fields())
    topology.bolt("end", partial(Where, seen), s.shuffle(), behind.shuffle(), parallelism=2)
    seen.clear()
    run(topology)
    assert Counter(index for _, index, _ in seen) == {0: 3, 1: 3}


def test_parallelism() -> None:
    """Of a fused bolt, that of the stage; of one that begins a stage, its own."""
    seen: list[tuple[Any, int, int]] = []
    run(flow(partial(Where, seen)), partitions=3)
    assert {tasks for _, _, tasks in seen} == {3}
    seen.clear()
    run(flow(same, partial(Where, seen)), partitions=3)
    assert {tasks for _, _, tasks in seen} == {2}


class Last(BasicBolt[int, list[int]]):
    def __init__(self) -> None:
        self.values: list[int] = []

    def execute(self, tup: Tuple[int], out: Collector[list[int]]) -> None:
        self.values.append(tup.value)

    def finish(self, out: Collector[list[int]]) -> None:
        out.emit(sorted(self.values))


def test_finish() -> None:
    """Each task emits once, when it has all that came over the exchange."""
    seen: list[list[int]] = []
    run(flow(same, Last, partial(Note, seen), parallelism=1))
    assert seen == [[0, 1, 2, 3, 4, 5]]


class Slow(Bolt[int, None]):
    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        await asyncio.sleep(0.02)
        out.ack(tup)


def test_time() -> None:
    """A call that takes longer than the message timeout is acked all the same."""
    topology: Any = Topology("time", message_timeout=0.001)
    topology.bolt("slow", Slow, topology.spout("s", [1]).shuffle())
    ran = run(topology)
    assert (ran.given_up, ran.differences()) == ([], [])


def test_held_to_the_end() -> None:
    """A timer settles the input in time, or it is given up."""
    for timeout, seconds, kinds in ((60.0, 0.05, []), (0.01, 0.5, [FailureKind.TIMEOUT])):
        topology: Any = Topology("held", message_timeout=timeout)
        topology.bolt("later", partial(AckLater, seconds), topology.spout("s", [1]).shuffle())
        ran = run(topology)
        assert ran.differences() == []
        assert [each.history[-1].kind for each in ran.given_up] == kinds


class Sums(BasicBolt[int, int]):
    def __init__(self) -> None:
        self.sum = 0

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.sum += tup.value
        out.emit(self.sum)


def test_state() -> None:
    """It lasts for a run: a second one begins anew."""
    seen: list[int] = []
    topology = flow(same, Sums, partial(Note, seen), parallelism=1)
    for _ in range(2):
        run(topology)
        assert seen == [0, 1, 3, 6, 10, 15]
        seen.clear()


class Times(BasicBolt[int, None]):
    """Notes when it is executed for the second time, and fails the first time."""

    def __init__(self, times: list[float]) -> None:
        self.times = times

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        if tup.attempt == 1:
            raise ValueError(tup.value)
        self.times.append(asyncio.get_running_loop().time())


def test_pauses() -> None:
    """Ten values return at ten moments, or at one."""
    here: list[float] = []
    there: list[float] = []
    complete(flow(partial(Times, here), values=range(10), parallelism=1))
    twin(flow(partial(Times, there), values=range(10)), spouts=1)
    assert (len(set(here)), len(there), len(set(there))) == (10, 10, 1)
    assert there[0] >= 0.1


class Shares(BasicBolt[int, None]):
    """Counts the tasks that share an object."""

    def __init__(self, seen: list[Counter[str]]) -> None:
        self.seen = seen

    def prepare(self, context: TaskContext) -> None:
        tasks: Counter[str] = context.shared.one(Counter)
        tasks[context.component] += 1
        self.seen.append(tasks)

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        out.emit(None)


def test_shared() -> None:
    """Two bolts that are fused share one in each of three partitions."""
    seen: list[Counter[str]] = []
    topology = flow(partial(Shares, seen), partial(Shares, seen), by="shuffle", parallelism=3)
    complete(topology)
    assert [*seen[0].values()] == [3, 3]
    seen.clear()
    twin(topology, spouts=3)
    assert [[*each.values()] for each in seen] == [[1, 1]] * 6


class Held:
    """A value of which each object is another one."""


def test_values() -> None:
    """Fused, a bolt gets the very object; behind an exchange it gets an equal one."""
    held = Held()
    for by, is_same in (("shuffle", True), ("global_", False)):
        seen: list[Held] = []
        twin(flow(same, partial(Note, seen), by=by, values=[held]))
        assert [each is held for each in seen] == [is_same]


VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="unset")


def setting() -> Iterator[int]:
    for number in range(2):
        VARIABLE.set(f"set for {number}")
        yield number


def test_context_variables() -> None:
    """A bolt sees them in process alone."""
    seen: list[str] = []
    topology = flow(lambda _: seen.append(VARIABLE.get()), values=setting, parallelism=1)
    complete(topology)
    assert seen == ["set for 0", "set for 1"]
    seen.clear()
    twin(topology)
    assert seen == ["unset", "unset"]


def test_counts() -> None:
    """Two messages fail once, and are acked then."""
    topology = flow(partial(Times, []), values=range(2), parallelism=1)
    here, there = complete(topology).statistics.components, twin(topology).statistics().components
    assert [(each["s"].failed, each["s"].replayed, each["b0"].failed) for each in (here, there)] == [
        (2, 2, 2),
        (0, 0, 2),
    ]
    assert here["s"].acked == there["s"].acked == 2


# As a stream.


def epochs(topology: Topology, *values: list[Any], spouts: int = 2) -> list[Twin]:
    """One epoch after another, each with the states of the one before."""
    runs: list[Twin] = []
    for each in values:
        runs.append(twin(topology, {"s": each}, spouts=spouts, states=runs[-1].left if runs else []))
    return runs


def test_ledger_of_states() -> None:
    """An epoch that was not given a state that the one before has left does not add up."""
    topology = flow(same, Sums, parallelism=1)
    (first,) = epochs(topology, [1])
    assert twin(topology, {"s": [2]}, states=first.left).differences == []
    second = twin(topology, {"s": [2]}, states=[])
    second.states = first.left
    assert second.differences


class JoinInEpoch(Join):
    """Drops what is alone at the end."""

    def flush(self, out: Collector[Any]) -> None:
        self.held = []


def test_joins_end_with_their_epoch() -> None:
    """What waits for a value of the next epoch is given up."""
    topology: Any = Topology("joins", message_timeout=5)
    topology.bolt("join", JoinInEpoch, topology.spout("s", ["a"]).fields(lambda value: 0))
    first, second = epochs(topology, ["a"], ["b", "c"])
    assert (first.failed, second.acked) == (["a"], ["b", "c"])


def test_parallelism_in_a_stream() -> None:
    """A class behind a shuffle from a spout has its own, a function that of the stage."""
    seen: list[tuple[Any, int, int]] = []
    topology = flow(partial(Where, seen), parallelism=2)
    twin(topology, spouts=3)
    twin(topology, spouts=3, states=[])
    assert {tasks for _, _, tasks in seen[:6]} == {3}
    assert {tasks for _, _, tasks in seen[6:]} == {2}
    assert lay_out(flow(same).describe(), in_epochs=True).stages[0].fused == ("b0",)


def test_no_finish_in_a_stream() -> None:
    """Not in the last epoch, either."""
    seen: list[list[int]] = []
    epochs(flow(same, Last, partial(Note, seen), parallelism=1), [1], [2])
    assert seen == []


class Counts(KeyedBolt[Any, Any, Any]):
    """Counts, and refuses odd numbers then; sets a timer for the next minute."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self.total += 1
        self.set_timer(self.now + 60)
        out.emit((tup.value, self.now))
        if tup.value == "odd":
            raise Reject("odd")

    def on_timer(self, at: float, out: Collector[Any]) -> None:
        out.emit(("timer", at))


def counting(*behind: Any) -> Topology:
    """A keyed bolt, and one behind an exchange."""
    topology: Any = Topology("counting", replay_delay=0)
    counts = topology.bolt("count", Counts, topology.spout("s", ["a"]).fields(), parallelism=2)
    for each in behind:
        topology.bolt("behind", each, counts.fields(str))
    return cast("Topology", topology)


def states(run: Twin) -> dict[Any, int]:
    """The totals that it leaves."""
    blobs = [blob_in(row) for row in run.left if row.kind == Kind.KEYED]
    state = State(StateId("count", "total"), Counts.total.declaration.declared)  # type: ignore[attr-defined]
    state.load([blob.entries for blob in blobs if blob.state == "total"])
    return dict(state.tables[0].committed_items())


def test_keyed_state() -> None:
    """In process and on Spark nothing is left of what is given up, and the rest is done again."""
    values = ["a", "b", "odd", "a"]
    run = twin(counting(), {"s": values}, spouts=1)
    assert (states(run), run.failed) == ({"a": 2, "b": 1}, ["odd"])
    assert run.statistics().components["count"].executed > len(values)
    store = MemoryStore()
    done = complete(counting(), {"s": values}, state=store, allow_leaks=["errors"])
    assert done.statistics.components["count"].executed > len(values)


def test_keyed_state_of_earlier_stages() -> None:
    """It counts a message that is given up in a later one."""
    run = twin(counting(raise_value_error), {"s": ["a"]})
    assert (states(run), run.failed) == ({"a": 1}, ["a"])


def test_keyed_state_after_a_run() -> None:
    """The next epoch begins with it."""
    first, second = epochs(counting(), ["a"], ["a", "b"])
    assert (states(first), states(second)) == ({"a": 1}, {"a": 2, "b": 1})


class Merges(KeyedBolt[str, str, None]):
    """Says how two counts become one."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        self.total += 1

    def merge(self, other: Self) -> None:
        self.total += other.total


def test_keyed_state_that_is_merged() -> None:
    """One tuple for each key crosses the exchange, where each input is a call in process."""
    topology = Topology("counting")
    topology.bolt("count", Merges, topology.spout("s", ["a"]).fields(), parallelism=2)
    run = twin(topology, {"s": [*"abab"] * 9}, spouts=1)
    assert states(run) == {"a": 18, "b": 18}
    assert run.statistics().components["count"].executed == 2
    assert complete(topology, {"s": [*"abab"] * 9}).statistics.components["count"].executed == 36


def test_now() -> None:
    """It is told by the driver, and the same for all."""
    run = twin(counting(), {"s": ["a", "b"]}, now=5.0)
    assert [now for _, now in run.emitted("count")] == [5.0, 5.0]


def test_timers() -> None:
    """One that is due is called at the end; one that a batch sets is not."""
    first = twin(counting(), {"s": ["a"]}, now=0.0)
    second = twin(counting(), {"s": ["b"]}, now=60.0, states=first.left)
    assert first.emitted("count") == [("a", 0.0)]
    assert second.emitted("count") == [("b", 60.0), ("timer", 60.0)]


def test_state_in_a_stream() -> None:
    """A sum goes on in the next epoch."""
    topology = flow(same, Sums, parallelism=1)
    assert [run.emitted("b1") for run in epochs(topology, [1], [2, 3], spouts=1)] == [[1], [3, 6]]


def test_shared_in_a_stream() -> None:
    """The second epoch finds nothing of the first."""
    seen: list[Counter[str]] = []
    epochs(flow(same, partial(Shares, seen), parallelism=1), [1], [2])
    assert [[*each.values()] for each in seen] == [[1], [1]]
