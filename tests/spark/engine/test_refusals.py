"""What Spark cannot run is refused in a sentence of its own: the component, the problem, the way out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, cast

import pytest
from msgspec.structs import replace

from stormlet import (
    BasicBolt,
    Collector,
    DirectStream,
    InvalidTopology,
    KeyedBolt,
    SqliteTable,
    TaskContext,
    Topology,
    Tuple,
    Value,
)
from stormlet.model.configuration import configure
from stormlet.model.description import Description
from stormlet.spark import DataFrameSink, DataFrameSpout
from stormlet.spark.engine.planning.refusals import check_batch, check_on_spark, check_replays, check_stream
from stormlet.spark.stream.stream import StreamSource
from tests.cast import Burst, Counting, Ticks, given, ignore, same
from tests.spark.engine.sketches import sketch


def unmade(cls: type[Any], **attributes: object) -> Any:
    """An object of this class, without Spark."""
    made: Any = object.__new__(cls)
    made.__dict__.update(attributes)
    return made


def frame(**attributes: object) -> Any:
    plain = {"resumes": False, "state_place": "", "order_by": (), "transport": "arrow"}
    return unmade(DataFrameSpout, **{**plain, **attributes})


def fed_by(source: object, **options: object) -> Topology:
    topology: Any = Topology("fed", **cast("Any", options))
    topology.bolt("end", ignore, topology.spout("numbers", source).shuffle())
    return cast("Topology", topology)


def reasons(topology: Topology | Description) -> list[str]:
    """The sentences with which it is refused."""
    description = topology if isinstance(topology, Description) else topology.describe()
    with pytest.raises(InvalidTopology) as refused:
        check_batch(description)
    return sentences(refused.value)


def sentences(refusal: InvalidTopology) -> list[str]:
    return [each.removeprefix("on Spark, ") for each in str(refusal).split("\n")]


def only(topology: Topology | Description) -> str:
    (reason,) = reasons(topology)
    return reason


# Topologies.


def test_a_cycle() -> None:
    """Its bolts are named."""
    topology = Topology("looping")
    first: Any = topology.bolt("a", same, topology.spout("s", [1]).shuffle())
    second: Any = topology.bolt("b", same, first.shuffle())
    topology.connect(first, second.shuffle())
    assert only(topology) == (
        "bolts 'a' and 'b' form a cycle, and stages follow one another; loop inside one bolt, or run the topology in "
        "this process"
    )


def test_a_bolt_that_takes_what_it_emits() -> None:
    """That is a cycle of one."""
    topology = Topology("looping")
    bolt: Any = topology.bolt("a", same, topology.spout("s", [1]).shuffle())
    topology.connect(bolt, bolt.shuffle())
    assert only(topology) == (
        "bolt 'a' forms a cycle, and stages follow one another; loop inside one bolt, or run the topology in this "
        "process"
    )


def test_no_ackers() -> None:
    """There would be no ledger."""
    assert only(fed_by([1], ackers=0)) == (
        "topology 'fed' has ackers=0, and Spark's work is checked by the ledger; leave out ackers=0"
    )


def test_all_reasons_are_given_at_once() -> None:
    """Nobody mends one to meet the next: each is a line."""
    topology = fed_by(None, ackers=0)
    topology.bolt("clock", Ticks, topology.spout("more", [1]).shuffle(), tick=2)
    with pytest.raises(InvalidTopology) as refused:
        check_batch(topology.describe())
    lines = str(refused.value).split("\n")
    assert [line.partition(" has")[0].partition(" ticks")[0] for line in lines] == [
        "on Spark, topology 'fed'",
        "on Spark, spout 'numbers'",
        "on Spark, bolt 'clock'",
    ]


# Spouts.

READABLE = "pass a list, a generator function or a DataFrameSpout by sources={'numbers': ...}"


def test_a_spout_that_the_host_feeds() -> None:
    """A batch has no host."""
    assert only(fed_by(None)) == (
        f"spout 'numbers' has no source, and nothing can be emitted into a batch; {READABLE}"
    )


@pytest.mark.parametrize("source", [Counting, partial(Counting), lambda: Counting()])
def test_a_spout_class(source: object) -> None:
    """The class, or whatever makes its instances."""
    assert only(fed_by(source)) == (
        f"spout 'numbers' is made by a Spout class, which only a task in this process can ask; {READABLE}"
    )


async def arriving(numbers: int = 3) -> AsyncIterator[int]:
    for number in range(numbers):
        yield number


@pytest.mark.parametrize("source", [arriving, partial(arriving, 2), arriving()])
def test_an_asynchronous_source(source: object) -> None:
    """A function, one with arguments bound, or an iterable."""
    assert only(fed_by(source)) == (
        f"spout 'numbers' is asynchronous, and a batch is read before it runs; {READABLE}"
    )


def test_a_checkpoint() -> None:
    """A batch does not go on where another one has ended."""
    assert only(fed_by(frame(resumes=True))) == (
        "spout 'numbers' has a checkpoint, and a batch is written whole or not at all; leave out checkpoint="
    )


def test_a_checkpoint_with_epochs() -> None:
    """The one option needs the other, so that both must go."""
    assert only(fed_by(frame(state_place="orders.checkpoint"))) == (
        "spout 'numbers' has a checkpoint, and a batch is written whole or not at all; leave out checkpoint= and "
        "epoch_rows="
    )


def test_an_order() -> None:
    """There is none between partitions."""
    assert only(fed_by(frame(order_by=("id",)))) == (
        "spout 'numbers' sorts its rows, and partitions are read beside each other; leave out order_by="
    )


def test_rows_without_arrow() -> None:
    """Types that need them must be cast."""
    assert only(fed_by(frame(transport="rows"))) == (
        "spout 'numbers' reads rows, and stages read Arrow; leave out transport=, and cast columns of types that Arrow "
        "lacks"
    )


def test_a_stream() -> None:
    """It has a function of its own."""
    assert only(fed_by(unmade(StreamSource))) == (
        "spout 'numbers' reads a stream, and a batch has an end; run the topology with stream_on_spark"
    )


def numbers(context: TaskContext) -> Iterator[int]:
    yield context.task_index


def resumable(resume: object = None) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    "source",
    [
        [1, 2],
        iter([1, 2]),
        range(3),
        numbers,
        resumable,
        partial(resumable),
        frame(),
    ],
)
def test_what_can_be_read(source: object) -> None:
    """Iterables, also those that can be read only once, generator functions of all kinds, and DataFrames."""
    check_batch(fed_by(source).describe())


def test_a_direct_stream_of_a_spout() -> None:
    """Tasks have other numbers on Spark."""
    topology = Topology("direct")
    chosen: Any = topology.spout("numbers", [1], outputs=DirectStream(int))
    topology.bolt("end", ignore, chosen.direct())
    assert only(topology) == (
        "spout 'numbers' declares a DirectStream, whose emits name tasks; declare a stream of its type, and use fields"
    )


# Bolts.


def test_a_direct_stream_of_a_bolt() -> None:
    """Whatever its name."""
    topology = fed_by([1])
    topology.bolt(
        "choose",
        same,
        topology.spout("more", [1]).shuffle(),
        outputs={"default": int, "one": DirectStream(int)},
    )
    assert only(topology) == (
        "bolt 'choose' declares a DirectStream, whose emits name tasks; declare a stream of its type, and use fields"
    )


def test_a_tick() -> None:
    """A bolt's own."""
    topology = fed_by([1])
    topology.bolt("clock", Ticks, topology.spout("more", [1]).shuffle(), tick=0.5)
    assert only(topology) == (
        "bolt 'clock' ticks every 0.5 s, and Spark's stages know no time; emit in flush or finish, or leave out tick="
    )


def configured(topology: Topology, **values: object) -> Description:
    """As with these settings of a command line."""
    description = topology.describe()
    return description.configured(configure(description.configuration, values, "x"), "x", values)[0]


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("where", ["topology", "settings"])
def test_ticks_of_the_whole_topology(where: str, *, configured: bool) -> None:
    """They reach the bolts that have a method tick, also by ``--set``; the others are content."""
    topology = fed_by([1], **({"tick": 5} if where == "topology" else {}))
    topology.bolt("clock", Ticks, topology.spout("more", [1]).shuffle())
    topology.bolt("burst", Burst, topology.spout("others", [1]).shuffle())
    description = topology.describe()
    settings = {"tick": 5} if where == "settings" else {}
    configuration = configure(description.configuration, settings, "x")
    changed = replace(description, configuration=configuration)
    assert only(changed.configured(configuration, "x")[0] if configured else changed) == (
        "bolt 'clock' ticks every 5 s, and Spark's stages know no time; emit in flush or finish, or leave out tick="
    )


def test_a_bolt_that_switches_its_ticks_off() -> None:
    """It does not tick, whatever the topology says."""
    topology = fed_by([1], tick=5)
    topology.bolt(
        "clock", Ticks, topology.spout("more", [1]).shuffle(), **{"topology.tick.tuple.freq.secs": None}
    )
    check_batch(topology.describe())


def test_a_bolt_after_a_sink() -> None:
    """In process it finishes after the sink has; here nothing is written before all is settled."""
    topology: Any = Topology("after")
    written = topology.bolt("write", DataFrameSink("out"), topology.spout("s", [1]).shuffle())
    topology.bolt("report", Burst, written.global_())
    assert only(topology) == (
        "bolt 'report' takes from sink 'write', which is written when all bolts have finished; do after the run what "
        "comes after the sink"
    )


def test_a_sink_that_writes_epochs() -> None:
    """Its directories and columns are those of epochs, which a batch does not have; it is written once anyway."""
    topology: Any = Topology("exact")
    topology.bolt("write", DataFrameSink("out", exactly_once=True), topology.spout("rows", frame()).shuffle())
    assert only(topology) == (
        "bolt 'write' writes epochs, and a batch is written once, as a whole; leave out exactly_once="
    )


@pytest.mark.parametrize(
    "logic", [ignore, print, lambda value: None, Burst, partial(Burst, 2), DataFrameSink("out")]
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"executor": "thread"},
        {"concurrency": 8},
        {"on_error": "restart"},
        {"on_error": "stop"},
        {"parallelism": 4},
    ],
)
def test_bolts_that_run(logic: Callable[..., object], options: dict[str, Any]) -> None:
    """Functions, lambdas, classes, partials and sinks, with all options."""
    topology = fed_by([1])
    topology.bolt("bolt", logic, topology.spout("more", [1]).shuffle(), **options)
    check_batch(topology.describe())


def test_all_groupings_but_direct() -> None:
    """Each has a place in the chain."""
    taken = ["shuffle", "local_or_shuffle", "none", "fields", "partial_key", "all", "global_", "custom"]
    check_batch(sketch(**{f"after_{each}": f"s.{each}" for each in taken}).describe())


def test_what_is_made_by_a_factory_runs() -> None:
    """Whatever the factory is."""
    topology = fed_by([1])
    topology.bolt("made", given(Burst()), topology.spout("more", [1]).shuffle())
    check_batch(topology.describe())


# Streams.


def refused_in_epochs(topology: Topology) -> list[str]:
    """The sentences with which it is refused as a stream."""
    with pytest.raises(InvalidTopology) as refused:
        check_stream(topology.describe())
    return sentences(refused.value)


def reading(logic: object = ignore, **options: object) -> Topology:
    """A topology that reads a stream."""
    topology: Any = Topology("fed", **cast("Any", options))
    topology.bolt("end", logic, topology.spout("numbers", unmade(StreamSource)).shuffle())
    return cast("Topology", topology)


def test_a_topology_without_a_stream() -> None:
    """It is a batch."""
    assert refused_in_epochs(fed_by([1])) == [
        "no spout of topology 'fed' reads a stream; run it with run_on_spark"
    ]


@pytest.mark.parametrize("source", [[1], frame(), unmade(StreamSource)])
def test_a_second_spout_beside_a_stream(source: object) -> None:
    """A second stream, too: the epochs of one are those of the whole topology."""
    topology = reading()
    topology.bolt("more", ignore, topology.spout("others", source).shuffle())
    (reason,) = refused_in_epochs(topology)
    assert reason == (
        "spout 'others' stands beside 'numbers', which gives all epochs; feed it from the same streaming DataFrame, as "
        "by union, or give it a topology of its own"
    )


def test_a_sink_that_overwrites_below_a_stream() -> None:
    """The next run would remove what this one has written."""
    (reason,) = refused_in_epochs(reading(DataFrameSink("out", mode="overwrite")))
    assert reason == (
        "bolt 'end' is a sink whose mode=\"overwrite\" would replace what earlier runs have written, so use "
        'mode="append"'
    )


def test_what_a_stream_and_a_batch_refuse_alike() -> None:
    """A cycle, no ackers and ticks, each in its own sentence."""
    topology: Any = reading(Ticks, ackers=0, tick=5)
    bolt = topology.bolt("a", same, topology.spout("others", [1]).shuffle())
    topology.connect(bolt, bolt.shuffle())
    common = [each for each in refused_in_epochs(topology) if not each.startswith("spout")]
    assert common == [each for each in reasons(topology) if not each.startswith("spout")]
    assert len(common) == 3


class Keyed(Burst):
    """Keeps an argument, in one way or another."""

    def __init__(self, key: object, *, other: object = None) -> None:
        super().__init__()
        self.key = key
        self._other = other


@dataclass(frozen=True)
class Declared(BasicBolt[int, int]):
    """Keeps all of its arguments."""

    key: object

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Do nothing."""


class Uses(Burst):
    """Uses an argument up."""

    def __init__(self, key: Any) -> None:
        super().__init__()
        self.made = key(1)


class SavesItself(Keyed):
    """Says by itself what its state is."""

    def __getstate__(self) -> None:
        return None


def of_this_program(value: object) -> object:
    return value


of_this_program.__module__ = "__main__"
UNSAVED: list[tuple[Any, str]] = [
    (partial(Keyed, lambda value: value), "key=<function <lambda>"),
    (partial(Keyed, {"key": lambda value: value}), "key={'key': <function <lambda>"),
    (partial(Keyed, key=Lock()), "key=<unlocked _thread.lock"),
    (partial(Keyed, 1, other=of_this_program), "other=<function of_this_program"),
    (partial(Declared, lambda value: value), "key=<function <lambda>"),
]


@pytest.mark.parametrize(("logic", "argument"), UNSAVED)
def test_an_argument_that_a_stream_cannot_save(logic: Any, argument: str) -> None:
    """The bolt has it among its attributes, which are saved with each epoch; in a batch there is nothing to save."""
    (reason,) = refused_in_epochs(reading(logic))
    assert reason.startswith(f"bolt 'end' keeps its argument {argument}")
    assert reason.endswith(
        "and a stream cannot save that; pass a function of a module in the place of a lambda, make it in prepare, or "
        "define __getstate__"
    )
    batch: Any = fed_by([1])
    batch.bolt("keeps", logic, batch.spout("more", [1]).shuffle())
    check_batch(batch.describe())


@pytest.mark.parametrize(
    "logic",
    [
        partial(Keyed, ignore),
        partial(Keyed, [1], other={"a": len}),
        partial(Uses, lambda value: value),
        partial(SavesItself, lambda value: value),
        partial(ignore),
        lambda: Keyed(Lock()),
    ],
)
def test_arguments_that_a_stream_can_save(logic: Any) -> None:
    """Or has no need to. What a factory makes is not known before it is called."""
    check_stream(reading(logic).describe())


class Keeping(Burst):
    """Says that it has state."""

    keeps_state = True


@pytest.mark.parametrize("logic", [ignore, Burst, Keeping, DataFrameSink("out", exactly_once=True)])
def test_what_runs_in_epochs(logic: object) -> None:
    """State outlives the process there, and sinks may write epochs."""
    check_on_spark(reading(logic).describe())


class Counted(KeyedBolt[str, str, None]):
    """Has keyed state, and an argument that pickle refuses."""

    total = Value(int, 0)

    def __init__(self, key: object) -> None:
        self.key_of = key

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        self.total += 1


def counted(source: object) -> Topology:
    topology: Any = Topology("counted")
    topology.bolt("count", partial(Counted, Lock()), topology.spout("words", source).fields())
    return cast("Topology", topology)


def test_keyed_state_is_for_batches_and_streams() -> None:
    """Attributes of its bolt are no state, so that a stream need not save them."""
    check_batch(counted(["a"]).describe())
    check_stream(counted(unmade(StreamSource)).describe())


def test_keyed_state_and_replays_from_the_source() -> None:
    """A message would change it once more."""
    with pytest.raises(InvalidTopology) as refused:
        check_replays(counted(["a"]).describe())
    (reason,) = sentences(refused.value)
    assert reason == (
        "bolt 'count' has keyed state, which a replay from the source would change once more; leave out "
        'replays="source"'
    )


def test_committers_and_epoch_bolts_are_refused() -> None:
    """A batch has no epochs."""
    topology = Topology("epochs")
    topology.bolt(
        "write", SqliteTable("entries", str, path="some.db"), topology.spout("words", ["a"]).shuffle()
    )
    with pytest.raises(
        InvalidTopology, match="bolt 'write' works on epochs, which a run in this process has"
    ):
        check_batch(topology.describe())
