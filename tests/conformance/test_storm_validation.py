"""Storm's cases of configuration, values, validation and queues: H1, H2, C1, C3, X2, X3, V1 to V6, Q1 and Q2, from
its TopologyIntegrationTest, TestStormSubmitter, TestConfigValidate, FieldsTest, UtilsTest and JCQueueTest."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    Collector,
    Configuration,
    EmitInfo,
    InvalidConfiguration,
    InvalidEmit,
    InvalidTopology,
    Spout,
    TaskContext,
    TaskHook,
    Topology,
    Tuple,
)
from stormlet.runtime.wire.inbox import Inbox
from tests.cast import Ack, Burst, Feeder, Hold, given
from tests.conformance.kit import Count, collect, mocked, settle
from tests.engines import Engine
from tests.helpers import now, run_to_end

# H1: what has been done.


class EmitsAcksFails(Bolt[int, str]):
    """Emits unanchored for each input, then acks and fails by turns."""

    def __init__(self) -> None:
        self._acks = False

    def execute(self, tup: Tuple[int], out: Collector[str]) -> None:
        out.emit("a")
        self._acks = not self._acks
        if self._acks:
            out.ack(tup)
        else:
            out.fail(tup)


@pytest.mark.simulated_time
async def test_H1_counts_after_each_tuple() -> None:
    """After each of four tuples the bolt's emitted, acked, failed and executed are exact."""
    topology, feeder = Topology("H1"), Feeder()
    topology.bolt("2", EmitsAcksFails, topology.spout("1", given(feeder)).shuffle())
    seen: list[tuple[int, ...]] = []
    async with topology.run() as running:
        for number in range(4):
            feeder.feed(1, number)
            await settle()
            counts = running.statistics().components["2"]
            seen.append((counts.emitted, counts.acked, counts.failed, counts.executed))
    assert seen == [(1, 1, 0, 1), (2, 1, 1, 2), (3, 2, 1, 3), (4, 2, 2, 4)]


class Hears(TaskHook):
    """Counts what one component does."""

    def __init__(self, counts: dict[str, Counter[str]]) -> None:
        self._all = counts

    def prepare(self, context: TaskContext) -> None:
        self._counts = self._all.setdefault(context.component, Counter())

    def emit(self, info: EmitInfo) -> None:
        self._counts["emitted"] += 1

    def bolt_ack(self, info: BoltAckInfo) -> None:
        self._counts["acked"] += 1

    def bolt_fail(self, info: BoltFailInfo) -> None:
        self._counts["failed"] += 1

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        self._counts["executed"] += 1


@pytest.mark.simulated_time
async def test_H1_hooks_hear_of_each_tuple() -> None:
    """A hook has heard of the same after each of four tuples."""
    topology, feeder, counts = Topology("H1"), Feeder(), dict[str, Counter[str]]()
    topology.bolt("2", EmitsAcksFails, topology.spout("1", given(feeder)).shuffle())
    seen: list[tuple[int, ...]] = []
    async with topology.run(hooks=[partial(Hears, counts)]):
        for number in range(4):
            feeder.feed(1, number)
            await settle()
            heard = counts["2"]
            seen.append((heard["emitted"], heard["acked"], heard["failed"], heard["executed"]))
    assert seen == [(1, 1, 0, 1), (2, 1, 1, 2), (3, 2, 1, 3), (4, 2, 2, 4)]


# H2: what tasks share.


class Resources(dict[str, object]):
    """The resources of a run, by key."""


class Provides(Ack):
    """Has a resource before any input comes."""

    def prepare(self, context: TaskContext) -> None:
        context.shared.one(Resources)["resource-key1"] = self


class EmitsResource(BasicBolt[str, object]):
    """Emits the resource for each key."""

    def prepare(self, context: TaskContext) -> None:
        self._resources = context.shared.one(Resources)

    def execute(self, tup: Tuple[str], out: Collector[object]) -> None:
        out.emit(self._resources[tup.value])


@pytest.mark.simulated_time
async def test_H2_user_resources_are_visible_to_tasks() -> None:
    """What one task has put into an object that the tasks of the run share, another one finds there."""
    topology, provider = Topology("H2"), Provides()
    keys = topology.spout("1", ["resource-key1"])
    seen = collect(topology, topology.bolt("2", EmitsResource, keys.shuffle()))
    topology.bolt("3", given(provider), keys.shuffle())
    await run_to_end(topology)
    assert seen == [provider]


# C1, C3: configuration.


class SeesItsConfiguration(BasicBolt[Any, Any]):
    """Notes the configuration it is prepared with."""

    def __init__(self) -> None:
        self.seen = Configuration()

    def prepare(self, context: TaskContext) -> None:
        self.seen = context.config

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        """Nothing to do."""


@pytest.mark.simulated_time
async def test_C1_component_specific_configuration() -> None:
    """A component sees its own options over the topology's, and the topology's where it has none."""
    topology, bolts = (
        Topology("C1", queue_capacity=20, message_timeout=7),
        (SeesItsConfiguration(), SeesItsConfiguration()),
    )
    lines = topology.spout("1")
    topology.bolt("2", given(bolts[0]), lines.shuffle(), queue_capacity=2)
    topology.bolt("3", given(bolts[1]), lines.shuffle())
    async with topology.run():
        pass
    assert [(bolt.seen.queue_capacity, bolt.seen.message_timeout) for bolt in bolts] == [(2, 7.0), (20, 7.0)]


def test_C1_an_unknown_key_is_refused() -> None:
    """Storm keeps keys it does not know; here a misspelt option is an error that names the component."""
    topology = Topology("C1")
    with pytest.raises(InvalidConfiguration, match=r"bolt '2': unknown option 'fake\.config'"):
        topology.bolt("2", Ack, topology.spout("1").shuffle(), **{"fake.config": 123})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("topology.acker.executors", None),
        ("topology.acker.executors", 1000),
        ("topology.acker.executors", 2**31 - 1),
        ("topology.acker.executors", 2**31),
        ("topology.message.timeout.secs", 1.0),
        ("topology.message.timeout.secs", 0.01),
        ("topology.message.timeout.secs", 1),
        ("topology.executor.receive.buffer.size", 64),
        ("topology.executor.receive.buffer.size", 1),
        ("topology.executor.receive.buffer.size", 42),
    ],
)
def test_C3_valid_values(option: str, value: object) -> None:
    """Integers and positive numbers are taken, powers of two or not."""
    Topology("C3", **{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("topology.acker.executors", 1.34),
        ("topology.acker.executors", -1),
        ("topology.message.timeout.secs", 0),
        ("topology.message.timeout.secs", -1),
        ("topology.message.timeout.secs", "43"),
        ("topology.executor.receive.buffer.size", 0),
        ("topology.executor.receive.buffer.size", -32),
        ("topology.executor.receive.buffer.size", "Forty-two"),
        ("topology.max.spout.pending", [object()]),
        ("topology.max.spout.pending", True),
    ],
)
def test_C3_invalid_values(option: str, value: object) -> None:
    """A wrong type or range is refused with the topology, the option, the value and what was expected."""
    with pytest.raises(InvalidConfiguration, match=rf"^topology 'C3': {option}=.*: expected an? "):
        Topology("C3", **{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("topology.workers", 42),
        ("topology.workers", 3.14159),
        ("topology.stats.sample.rate", 0.5),
        ("topology.stats.sample.rate", 1e308),
        ("topology.stats.ewma.smoothing.factor", 0.1),
        ("topology.stats.ewma.smoothing.factor", -0.1),
    ],
)
def test_C3_values_without_effect(option: str, value: float, caplog: pytest.LogCaptureFixture) -> None:
    """What has no effect here is not checked, but a warning says so, and why."""
    with caplog.at_level(logging.WARNING):
        Topology("C3", **{option: value})
    assert [record.message.split(":")[0] for record in caplog.records] == ["topology 'C3'"]
    assert f"{option} has no effect" in caplog.text


# X2, X3: time and values.


@pytest.mark.simulated_time
async def test_X2_simulated_time() -> None:
    """It begins at 0, moves by exactly what is slept, by nothing for 0, and never back."""
    moments = [now()]
    for seconds in (0, 0.125, 1, 0, 1.5, -1, 10):
        await asyncio.sleep(seconds)
        moments.append(now())
    assert moments == [0, 0, 0.125, 1.125, 1.125, 2.625, 2.625, 12.625]


def test_X3_duplicate_fields() -> None:
    """A field name may be declared once."""
    with pytest.raises(InvalidTopology, match="spout '1': duplicate field 'x'"):
        Topology("X3").spout("1", outputs=["x", "y", "x"])


def test_X3_an_unknown_field() -> None:
    """It is refused with the fields that exist."""
    stream = Topology("X3").spout("1", outputs=["foo", "bar"])
    with pytest.raises(InvalidTopology, match=r"no field 'x' in \(foo, bar\), which has 'foo', 'bar'"):
        stream.fields("x")


@pytest.mark.simulated_time
@pytest.mark.parametrize("value", [("a", "b", "c"), ("a",), (), "ab", None])
async def test_X3_a_value_of_a_wrong_size(value: object) -> None:
    """Where two fields are declared, the emit of anything but a pair is refused there."""
    topology = Topology("X3")
    stream = topology.spout("1", outputs=["foo", "bar"])
    topology.bolt("2", Ack, stream.shuffle())
    async with topology.run() as running:
        with pytest.raises(InvalidEmit, match=r"'1' emits .* does not fit its declared fields: Expected"):
            await running.emit(stream, value)


@pytest.mark.simulated_time
async def test_X3_fields_are_read_by_name() -> None:
    """A tuple gives its fields by name in any order, and names those it has when asked for another."""
    topology, bolt = Topology("X3"), Hold()
    stream = topology.spout("1", outputs=["foo", "bar"])
    topology.bolt("2", given(bolt), stream.fields("bar", "foo"))
    async with topology.run() as running:
        await running.emit(stream, ("a", "b"))
        await settle()
        tup = bolt.held[0]
        assert (tup["bar"], tup["foo"], tup.component, tup.stream) == ("b", "a", "1", "default")
        with pytest.raises(KeyError, match=r"no field 'x' in \(foo, bar\)"):
            tup["x"]
        bolt.ack()


# V1 to V5: validation.


def test_V1_a_valid_subscription() -> None:
    """A bolt may group by a declared field."""
    topology = Topology("V1")
    words = topology.spout("1", mocked("a"), parallelism=3, outputs=["word"])
    topology.bolt("2", Count, words.fields("word"), parallelism=4)
    assert [each.source.component for each in topology.describe().bolts["2"].inputs] == ["1"]


def test_V1_an_unknown_component() -> None:
    """Streams are handles, so the only unknown component is one of another topology."""
    topology, other = Topology("V1"), Topology("other")
    topology.spout("1")
    with pytest.raises(
        InvalidTopology, match="bolt '2': stream 'default' of '3' belongs to another topology than 'V1'"
    ):
        topology.bolt("2", Ack, other.spout("3").shuffle())


def test_V1_an_unknown_field() -> None:
    """It is refused with the stream and the fields that exist."""
    words = Topology("V1").spout("1", outputs=["word"])
    with pytest.raises(
        InvalidTopology, match=r"^stream 'default' of '1': no field 'non-exists-field' in \(word\)"
    ):
        words.fields("non-exists-field")


def test_V1_a_field_of_another_stream() -> None:
    """The fields of each stream are its own: Storm takes those of all the component's streams together."""
    words = Topology("V1").spout("1", outputs={"default": ["word"], "other": ["number"]})
    words.named("other").fields("number")
    with pytest.raises(InvalidTopology, match="no field 'number'"):
        words.fields("number")


def test_V1_an_unknown_stream() -> None:
    """It is refused with the streams that exist."""
    words = Topology("V1").spout("1", outputs=["word"])
    with pytest.raises(InvalidTopology, match="'1' declares no stream 'non-exists-stream', only 'default'"):
        words.named("non-exists-stream")


@pytest.mark.parametrize("logic", [Ack, Count, str.upper])
@pytest.mark.parametrize("parallelism", [0, -1])
def test_V2_parallelism_of_a_bolt(logic: Callable[..., Any], parallelism: int) -> None:
    """No kind of bolt has fewer tasks than one."""
    topology = Topology("V2")
    with pytest.raises(
        InvalidConfiguration, match=rf"bolt '2': parallelism must be at least 1, not {parallelism}"
    ):
        topology.bolt("2", logic, topology.spout("1").shuffle(), parallelism=parallelism)


@pytest.mark.parametrize("source", [Feeder, None, ["a"]])
def test_V2_parallelism_of_a_spout(source: type[Spout[Any]] | list[str] | None) -> None:
    """No kind of spout has fewer tasks than one."""
    with pytest.raises(InvalidConfiguration, match="spout '1': parallelism must be at least 1, not 0"):
        Topology("V2").spout("1", source, parallelism=0)


def test_V3_no_spout() -> None:
    """A topology without a spout does not run."""
    with pytest.raises(InvalidTopology, match="topology 'V3' does not have any spout"):
        Topology("V3").run()


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_V4_a_topology_needs_a_name(name: str) -> None:
    """A blank name is refused."""
    with pytest.raises(InvalidTopology, match="a topology needs a name"):
        Topology(name)


def test_V4_a_name_is_no_path() -> None:
    """Names that Storm refuses, because they become paths there, are taken."""
    assert Topology("test/aaa").name == "test/aaa"


def test_V4_a_name_is_text_that_a_file_can_hold() -> None:
    """Also that of a stream."""
    topology = Topology("V4")
    for name, make in {
        "topology '\ud800'": lambda: Topology("\ud800"),
        "spout '\ud800'": lambda: topology.spout("\ud800"),
        "spout '1', stream '\ud800'": lambda: topology.spout("1", outputs={"\ud800": None}),
    }.items():
        with pytest.raises(InvalidTopology, match="a name must not have halves of characters") as refused:
            make()
        assert str(refused.value).startswith(f"{name.encode('ascii', 'backslashreplace').decode()}: ")


@pytest.mark.parametrize("id", ["__acker", "__x", ""])
def test_V4_system_ids(id: str) -> None:
    """Ids of components and names of streams that begin with two underscores are the engine's."""
    topology = Topology("V4")
    with pytest.raises(InvalidTopology, match=f"spout {id!r}: an id must not be empty or begin with '__'"):
        topology.spout(id)
    with pytest.raises(InvalidTopology, match=f"spout '1': {id!r} is no valid stream name"):
        topology.spout("1", outputs={id: None})


def test_V5_tasks_are_the_parallelism() -> None:
    """Storm's number of tasks beside the executors is refused, with the way out."""
    with pytest.raises(
        InvalidConfiguration, match=r"topology\.tasks is not supported: .*give it parallelism"
    ):
        Topology("V5").spout("1", **{"topology.tasks": 0})


@pytest.mark.simulated_time
async def test_V5_over_parallelism() -> None:
    """Of 21, 9, 2 and 10 tasks there are so many, numbered through after the acker, and each spout task opens
    once."""
    topology = Topology("V5")
    opened = []
    spout = topology.spout("1", lambda: opened.append(1) or Feeder(), parallelism=21)
    for id, parallelism in (("2", 9), ("3", 2), ("4", 10)):
        topology.bolt(id, Ack, spout.shuffle(), parallelism=parallelism)
    async with topology.run() as running:
        tasks = {id: list(each.tasks or ()) for id, each in running.statistics().components.items()}
    assert {id: len(each) for id, each in tasks.items()} == {"__acker": 1, "1": 21, "2": 9, "3": 2, "4": 10}
    assert [task for each in tasks.values() for task in each] == list(range(1, 44))
    assert len(opened) == 21


# V6: cycles.


def wired(edges: Iterable[str]) -> Topology:
    """A topology of these edges; what begins with s is a spout."""
    topology = Topology("V6")
    streams: dict[str, Any] = {}
    for source, target in (edge.split(">") for edge in edges):
        if source not in streams:
            assert source.startswith("s"), f"{source} has no input yet"
            streams[source] = topology.spout(source)
        if target in streams:
            topology.connect(streams[target], streams[source].shuffle())
        else:
            streams[target] = topology.bolt(target, Ack, streams[source].shuffle())
    return topology


TREE = "s1>b1 s1>b2 b1>b11 b1>b12 b2>b21 b2>b22"
CYCLES = [
    (TREE, []),
    (f"{TREE} s1>b3 b3>b3", [{"b3"}]),
    (f"{TREE} s1>b3 b3>b4 b4>b5 b5>b3", [{"b3", "b4", "b5"}]),
    (f"{TREE} s1>b3 b3>b4 b4>b5 b5>b3 s1>b6 b6>b6", [{"b3", "b4", "b5"}, {"b6"}]),
    ("s1>b1 b1>b2 b2>b3 b3>b4 s2>b4 b4>b3 b4>b1", [{"b1", "b2", "b3", "b4"}]),
    ("s1>b1 b1>b2 b2>b1 b2>b3 s2>b4 b4>b3 b4>b1", [{"b1", "b2"}]),
]


@pytest.mark.parametrize(("edges", "cycles"), CYCLES)
def test_V6_find_component_cycles(edges: str, cycles: Sequence[set[str]]) -> None:
    """The cycles are found, each as the components that reach one another."""
    found = [frozenset(cycle) for cycle in wired(edges.split()).describe().cycles()]
    assert sorted(found, key=sorted) == [frozenset(cycle) for cycle in cycles]


class CountsDown(BasicBolt[int, int]):
    """Emits one less until there is nothing left."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        if tup.value:
            out.emit(tup.value - 1)


@pytest.mark.simulated_time
async def test_V6_cycles_run() -> None:
    """A cycle is allowed, and a tree that goes round it 5,000 times, past every queue's capacity, is acked."""
    topology = Topology("V6", queue_capacity=1)
    numbers = topology.spout("1")
    down = topology.bolt("2", CountsDown, numbers.shuffle())
    topology.connect(down, down.shuffle())
    async with topology.run() as running:
        await (await running.emit(numbers, 5000))
    assert running.statistics().components["2"].executed == 5001


# Q1, Q2: queues.


def test_Q1_an_inbox_is_full_at_its_capacity() -> None:
    """After 63 of 64 there is room, after 64 there is none, and taking makes room again."""
    inbox: Any = Inbox(64, lambda: None)
    full = []
    for number in range(100):
        inbox.items.append(number)
        full.append(inbox.full)
    assert full == [False] * 63 + [True] * 37
    assert [*inbox.take(), *inbox.take()] == list(range(100))
    assert not inbox.full


class Gate(Bolt[int, int]):
    """Waits before its first input until the test lets it go on."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.seen: list[int] = []

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        await self.open.wait()
        self.seen.append(tup.value)
        out.ack(tup)


@pytest.mark.simulated_time
@pytest.mark.parametrize("capacity", [1, 10, 64])
async def test_Q1_a_spout_waits_for_room(capacity: int) -> None:
    """Before a bolt that does not move, a spout stops at twice the capacity: one batch in hand, one queued."""
    topology, bolt = Topology("Q1", queue_capacity=capacity, max_spout_pending=None), Gate()
    topology.bolt("2", given(bolt), topology.spout("1", range(1000)).shuffle())
    async with topology.run() as running:
        await settle()
        emitted = running.statistics().components["1"].emitted
        bolt.open.set()
        await running.finished()
    assert capacity < emitted <= 2 * capacity
    assert bolt.seen == list(range(1000))


@pytest.mark.simulated_time
async def test_Q1_what_does_not_fit_is_not_lost() -> None:
    """One call that emits 100 into a queue of 64 is never interrupted, and all arrive in their order."""
    topology, bolt = Topology("Q1", queue_capacity=64), Gate()
    hundreds = topology.bolt("2", partial(Burst, 100), topology.spout("1", range(10)).shuffle())
    topology.bolt("3", given(bolt), hundreds.shuffle())
    async with topology.run() as running:
        await settle()
        assert running.statistics().components["2"].emitted == 200
        bolt.open.set()
        await running.finished()
    assert bolt.seen == list(range(100)) * 10


@pytest.mark.simulated_time(seed=11)
@pytest.mark.parametrize("capacity", [1, 10, 1024])
async def test_Q2_first_in_first_out(engine: Engine, capacity: int) -> None:
    """Through two bolts with queues of any capacity, the order of one producer is kept."""
    topology = Topology("Q2", queue_capacity=capacity)
    numbers = topology.bolt("2", lambda number: number, topology.spout("1", range(1000)).shuffle())
    seen = collect(topology, topology.bolt("3", lambda number: number, numbers.shuffle()))
    await engine.run_to_end(topology)
    assert seen == list(range(1000))
