"""Functions that inputs pass straight through do what the engine's own way does with them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from stormlet import BatchBolt, Collector, Reject, To, Topology, TopologyCrashed, Tuple
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import TaskStatistics
from stormlet.spark.engine.partition import exits, lanes, merging
from stormlet.spark.engine.partition import partition as partitions
from stormlet.spark.engine.partition.deliveries import Deliveries
from stormlet.spark.engine.partition.inputs import Batch
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.partition.shortcut import Shortcut
from stormlet.testing import complete
from tests.cast import same
from tests.spark.engine.random_topologies import FUNCTIONS, Plan, plans
from tests.spark.engine.test_combiners import Some, Total
from tests.spark.engine.twin import Twin, twin

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Counted(Twin):
    """A run, and what its tasks have counted."""

    @property
    def counted(self) -> dict[int, TaskStatistics]:
        """The counts of all tasks."""
        return {
            task: msgspec.structs.replace(counts, execute_seconds=0.0)
            for report in self.reports
            for task, counts in report.statistics.items()
        }

    @property
    def failures(self) -> list[RepeatedFailure]:
        """The failures of all tasks."""
        return [each for report in self.reports for each in report.failures]

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """The attempts and the last failure of every message that was given up."""
        return [(each.attempts, str(each.history[-1])) for each in self.given_up]


NOTE: ContextVar[int] = ContextVar("NOTE", default=-1)


class Record(msgspec.Struct, frozen=True):
    """A number."""

    n: int


@pytest.fixture(autouse=True)
def no_log() -> Iterator[None]:
    """Thousands of failures are expected."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def both_ways(make: Callable[[], Topology], **options: Any) -> tuple[Counted, Counted]:
    """Run a topology by the direct way, and by the engine's own."""
    with pytest.MonkeyPatch.context() as patch:
        passed = _noting(patch)
        direct = twin(make(), kind=Counted, **options)
        assert passed
        patch.setattr(partitions, "shortcut_of", lambda *_: None)
        return direct, twin(make(), kind=Counted, **options)


def _noting(patch: pytest.MonkeyPatch) -> list[int]:
    passed, pass_through = list[int](), Shortcut.pass_through

    def noted(self: Shortcut, batch: Any) -> bool:
        passed.append(len(batch.values))
        return pass_through(self, batch)

    patch.setattr(Shortcut, "pass_through", noted)
    return passed


def check_equal(direct: Counted, engine: Counted) -> None:
    """They have sent the same rows, and said the same of themselves."""
    assert direct.rows == engine.rows
    assert direct.counted == engine.counted
    assert direct.outcomes == engine.outcomes
    assert said(direct.failures) == said(engine.failures)
    failing = {component for component, _, _ in said(direct.failures)}
    for ours, theirs in zip(direct.reasons, engine.reasons, strict=True):
        # Of several bolts that have failed a message, any may be the one that is told.
        assert ours == theirs or (ours[0] == theirs[0] and len(failing) > 1)
    assert direct.differences == engine.differences == []


def said(failures: Sequence[RepeatedFailure]) -> Counter[tuple[str, str, str]]:
    """How often each has happened. Where the engine refuses an output, the place is a line of its own."""
    counts = Counter[tuple[str, str, str]]()
    for each in failures:
        ours = each.kind in ("InvalidEmit", "UnroutableKey")
        counts[each.component, each.kind, "" if ours else f"{each.error} {each.value} {each.place}"] += (
            each.count
        )
    return counts


@MANY
@given(plans(FUNCTIONS))
def test_random_functions_give_the_same_rows_and_counts(plan: Plan) -> None:
    """Byte by byte, whatever fails in the middle."""
    if any(plan.sizes):
        check_equal(*both_ways(plan.topology, spouts=plan.spouts, seed=plan.seed))


def numbers(logic: Any, count: int = 2500, **options: Any) -> Callable[[], Topology]:
    """A function, and a bolt behind it by fields."""

    def make() -> Topology:
        topology = Topology("numbers", replay_delay=0, max_attempts=2)
        source = topology.spout("numbers", range(count))
        bolt: Any = topology.bolt("logic", logic, source.shuffle(), **options)
        topology.bolt("end", same, bolt.fields(), parallelism=3)
        return topology

    return make


def rejects(n: int) -> int:
    """Takes no sevens."""
    if n % 7 == 0:
        raise Reject(f"{n} is divided by seven")
    return n


def fails_once() -> Callable[[int], Iterator[int]]:
    """Emits, and fails in the first attempt at each ninth."""
    failed = set[int]()

    def logic(n: int) -> Iterator[int]:
        yield n
        if n % 9 == 0 and n not in failed:
            failed.add(n)
            raise ValueError(n)
        yield -n

    return logic


def to_default(n: int) -> Any:
    """A value that names its stream, a plain one, nothing, and an unknown stream."""
    return (To(n), n, None, To(n, stream="other"))[n % 4]


def misfit(n: int) -> Any:
    """Not always what it declares."""
    return Record(n) if n % 5 else n


def some_misfit(n: int) -> Iterator[Any]:
    """A generator whose second value does not fit."""
    yield Record(n)
    yield misfit(n)


def unroutable(n: int) -> Any:
    """Now and then, a key without a stable hash."""
    return n if n % 11 else object()


def makes_classes(n: int) -> Any:
    """Values of any type, a class and a list among them."""
    return (n, Record, [n], {"n": n}, "text")[n % 5]


@pytest.mark.parametrize("logic", [rejects, to_default, unroutable], ids=lambda logic: logic.__name__)
def test_what_cannot_be_emitted_fails_as_in_the_engine(logic: Any) -> None:
    """With the same words."""
    direct, engine = both_ways(numbers(logic))
    assert direct.failed
    check_equal(direct, engine)


@pytest.mark.parametrize("logic", [misfit, some_misfit])
def test_a_value_that_does_not_fit_its_stream_fails_its_input(logic: Any) -> None:
    """And no other."""
    direct, engine = both_ways(numbers(logic, outputs=Record))
    assert len(direct.failed) == 500
    check_equal(direct, engine)


def test_an_input_that_fails_once_is_executed_again() -> None:
    """What its first attempt has emitted does not leave."""
    direct = twin(numbers(fails_once())(), spouts=1, kind=Counted)
    assert direct.failed == []
    assert sorted(direct.emitted("end")) == sorted([*range(2500), *(-n for n in range(2500))])
    assert {each.attempts for each in direct.outcomes if each.value % 9 == 0} == {2}


def test_nobody_overtakes_another() -> None:
    """An input that has failed comes after the others of its batch, which keep their order."""
    run = twin(numbers(fails_once())(), spouts=1)
    for task in range(3):
        mine = [n for n in run.emitted("end") if run.tasks["end", "default", repr(n)] == {task} and n % 9]
        assert [abs(n) for n in mine] == sorted(map(abs, mine))


def test_outputs_of_any_type_leave() -> None:
    """A class is a value, and so is a list."""
    direct = twin(by_text(makes_classes), kind=Counted, spouts=1)
    assert direct.failed == []
    assert len(direct.emitted("end")) == 100


def by_text(logic: Any) -> Topology:
    """The same, by a key that every value has."""
    topology = Topology("texts")
    source = topology.spout("numbers", range(100))
    bolt: Any = topology.bolt("logic", logic, source.shuffle())
    topology.bolt("end", same, bolt.fields(repr))
    return topology


def test_a_function_that_returns_something_to_await_is_left_to_the_engine() -> None:
    """From the first such result on, which is asked for twice."""
    done, called = list[int](), list[int]()

    async def later(n: int) -> int:
        done.append(n)
        return n

    def logic(n: int) -> Any:
        called.append(n)
        return later(n) if n >= 1500 else n

    run = twin(numbers(logic)(), spouts=1, kind=Counted)
    assert sorted(run.emitted("end")) == list(range(2500))
    assert done == list(range(1500, 2500))
    assert called == sorted([*range(2500), 1500])
    assert run.counted[min(run.counted)].executed == 2500


def test_a_key_function_that_raises_crashes_as_ever() -> None:
    """It is no fault of the input."""

    def wrong(n: int) -> int:
        raise ZeroDivisionError

    topology = Topology("wrong")
    bolt = topology.bolt("logic", same, topology.spout("numbers", range(10)).shuffle())
    topology.bolt("end", same, bolt.fields(wrong))
    with pytest.raises(TopologyCrashed, match="key function"):
        twin(topology)


def test_functions_behind_an_exchange_are_passed_through() -> None:
    """The words of what was sent to them are settled, of those that fail, too."""

    def make() -> Topology:
        topology = Topology("stages", replay_delay=0, max_attempts=2)
        head = topology.bolt("head", rejects, topology.spout("numbers", range(3000)).fields(), parallelism=2)
        topology.bolt("end", same, topology_shuffled(topology, head).fields(), parallelism=2)
        return topology

    direct, engine = both_ways(make)
    assert len(direct.failed) == 429
    check_equal(direct, engine)


def topology_shuffled(topology: Topology, head: Any) -> Any:
    """A bolt that is fused behind another."""
    return topology.bolt("fused", same, head.shuffle())


def test_what_a_function_sets_in_its_context_stays_in_its_task() -> None:
    """Though it is called beside others (law B10)."""
    seen = set[int]()

    def sets(n: int) -> Record:
        NOTE.set(n)
        return Record(n)

    def looks(record: Record) -> None:
        seen.add(NOTE.get())

    topology = Topology("notes")
    noted = topology.bolt("sets", sets, topology.spout("n", range(2500)).shuffle(), outputs=Record)
    topology.bolt("looks", looks, noted.shuffle())
    twin(topology, spouts=1)
    assert seen == {-1}


def test_what_is_merged_is_the_same() -> None:
    """With failures between; each total belongs to the messages that were acked before it."""

    def make() -> Topology:
        topology = Topology("sums", replay_delay=0, max_attempts=2)
        source = topology.spout("numbers", range(5000))
        some = topology.bolt("some", _some, source.shuffle(), outputs=Some)
        topology.bolt("total", Total, some.fields("word"), parallelism=2)
        return topology

    direct, engine = both_ways(make)
    assert sorted(direct.emitted("total")) == sorted(engine.emitted("total"))
    assert direct.outcomes == engine.outcomes
    assert direct.differences == engine.differences == []
    assert len(direct.failed) == 715


def _some(n: int) -> Some:
    return Some(f"word {rejects(n) % 10}")


def test_what_is_merged_leaves_before_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A total says of which messages it is, so that a day of them would fill the memory."""
    monkeypatch.setattr(merging, "MOST_MERGED", 1000)
    topology = Topology("sums")
    some = topology.bolt(
        "some", lambda n: Some(f"{n % 10}"), topology.spout("n", range(5000)).shuffle(), outputs=Some
    )
    topology.bolt("total", Total, some.fields("word"), parallelism=2)
    run = twin(topology, spouts=1)
    assert sum(line.emitted for line in run.lines) == 50
    sent = [row.kind for rows in run.rows.values() for row in rows]
    assert Counter(sent) == {Kind.CHUNK: 10, Kind.MEMBERS: 5}
    assert sorted(run.emitted("total")) == [Some(f"{n}", 500) for n in range(10)]


def test_the_counts_are_those_of_this_process() -> None:
    """Of executed, emitted and transferred tuples, by component."""
    mine = twin(numbers(same)(), spouts=1, kind=Counted)
    theirs = complete(numbers(same)()).statistics
    counted: Mapping[str, Sequence[TaskStatistics]] = {
        id: [mine.counted[task.task] for task in mine.cluster.plan.tasks[id]] for id in ("logic", "end")
    }
    for id, counts in counted.items():
        there = theirs.components[id]
        for name in ("executed", "emitted", "transferred", "acked", "failed"):
            assert sum(getattr(each, name) for each in counts) == getattr(there, name), (id, name)


def test_what_is_joined_of_many_messages_is_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few values may have the roots of millions."""

    class Joins(BatchBolt[int, int]):
        size = 500

        def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
            out.emit(len(tups), anchors=tups)

    monkeypatch.setattr(partitions, "HEAVY", 20_000)
    together, batch_of = list[int](), Deliveries.batch_of

    def noted(self: Deliveries, rows: Sequence[Row]) -> Batch:
        batch = batch_of(self, rows)
        together.append(len(batch.messages))
        return batch

    monkeypatch.setattr(Deliveries, "batch_of", noted)
    monkeypatch.setattr(lanes, "CHUNK", 1)
    monkeypatch.setattr(exits, "CHUNK", 1)
    topology = Topology("joins")
    joins = topology.bolt("joins", Joins, topology.spout("n", range(20_000)).shuffle(), outputs=int)
    topology.bolt("end", same, joins.fields(), parallelism=2)
    run = twin(topology, spouts=1)
    assert sum(together) == 20_000
    assert max(together) <= 20_000 // 8 + 500
    assert run.differences == []
