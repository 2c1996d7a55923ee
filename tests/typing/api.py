"""Every form of spout, bolt and wiring that users may write: mypy --strict and pyright strict accept all of it, and
infer these types."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, MutableMapping, MutableSequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, assert_type

import msgspec

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Call,
    Cell,
    Collector,
    DirectStream,
    EndOfStream,
    Explanation,
    Failure,
    KeyedBolt,
    ListOf,
    MapOf,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    To,
    Topology,
    Tree,
    Tuple,
    Value,
    run,
)
from stormlet.connect import files, kafka, kestrel, nats, postgres, rabbitmq, redis
from stormlet.connect.decoding import Received
from stormlet.spark import DataFrameSink, DataFrameSpout, stream
from stormlet.testing import (
    Ack,
    BoltResult,
    CollectingBolt,
    Fail,
    Feeder,
    Input,
    ScriptedBolt,
    complete,
    complete_async,
    run_bolt,
    run_bolt_async,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame


class Word(msgspec.Struct, frozen=True):
    """What most streams here carry."""

    text: str


class Total(msgspec.Struct, frozen=True):
    """What the others carry."""

    word: str
    count: int


WORDS = [Word("a"), Word("b")]
SETTINGS: dict[str, Any] = {"topology.message.timeout.secs": 30, "topology.acker.executors": None}
topology = Topology("api", message_timeout=10.0, **{"topology.acker.executors": 2})
Topology("settings", **SETTINGS)
Topology("options", message_timeout=None, timeout_restarts_on="activity", ackers=2, record_edges=0.1, tick=1)


# Spouts.


class Words(Spout[Word]):
    """A class, with the arguments of its factory."""

    def __init__(self, words: Iterator[Word] | None = None) -> None:
        self.words = words or iter(WORDS)

    async def open(self, context: TaskContext, out: SpoutCollector[Word]) -> None:
        """Some methods are coroutines …"""

    def next_tuple(self, out: SpoutCollector[Word]) -> None:
        """… and others are not."""
        word = next(self.words, None)
        if word is None:
            raise EndOfStream
        out.emit(word, message_id=word.text)
        out.emit_many([word, word], message_ids=[1, 2], origins=("here", "there"))
        out.emit("any value at all", stream="notes")

    def fail(self, message_id: object, failure: Failure) -> None:
        """Overridden with the type that it has."""


def generated() -> Iterator[Word]:
    """A generator function."""
    yield from WORDS


def shared(context: TaskContext) -> Iterator[Word]:
    """A generator function that shares the work among its tasks."""
    yield from WORDS[context.task_index :: context.parallelism]


def repeated(times: int) -> Iterator[Word]:
    """A generator function with arguments."""
    for _ in range(times):
        yield from WORDS


async def polled() -> AsyncIterator[Word]:
    """An async generator function."""
    yield Word("a")


async def routed() -> AsyncIterator[Word | To[str]]:
    """An async generator function that feeds two streams."""
    yield Word("a")
    yield To("a remark", stream="notes")


words = topology.spout("words", Words, outputs={"default": Word, "notes": None}, max_spout_pending=None)
assert_type(words, Stream[Word])
assert_type(topology.spout("made", lambda: Words(iter(WORDS))), Stream[Word])
assert_type(topology.spout("partial", partial(Words, None), parallelism=2), Stream[Word])
assert_type(topology.spout("generated", generated, max_attempts=1, replay_delay=0.5), Stream[Word])
assert_type(topology.spout("repeated", partial(repeated, 2)), Stream[Word])
assert_type(topology.spout("shared", shared, parallelism=2), Stream[Word])
assert_type(topology.spout("polled", polled), Stream[Word])
assert_type(topology.spout("routed", routed, outputs={"default": Word, "notes": None}), Stream[Word])
assert_type(topology.spout("list", WORDS, outputs=Word), Stream[Word])
assert_type(topology.spout("iterator", iter(WORDS)), Stream[Word])
assert_type(topology.spout("async iterator", polled()), Stream[Word])
assert_type(topology.spout("fed", outputs=Word), Stream[Word])
assert_type(topology.spout("storm", WORDS, **{"topology.max.spout.pending": 10}), Stream[Word])
topology.set_source(words, Words)
topology.set_source(words, generated)
topology.set_source(words, shared)
topology.set_source(words, polled)
topology.set_source(words, routed)
topology.set_source(words, WORDS)
topology.set_source(words, None)
topology.run(sources={"words": WORDS, "shared": None})
topology.run(sources={words: WORDS})
topology.run(max_spout_pending=None, timeout_restarts_on="init", **SETTINGS)
tables: Stream[tuple[str, int]] = topology.spout("tables", outputs=["word", "count"])


# Functions of the value.


def length(word: Word) -> int:
    """One output, always."""
    return len(word.text)


def known(word: Word) -> Total | None:
    """One output or none."""
    return Total(word.text, 1) if word.text else None


def letters(word: Word) -> Iterator[str]:
    """Any number of outputs."""
    yield from word.text


def pairs(word: Word) -> tuple[str, int]:
    """One output that is a tuple."""
    return word.text, 1


async def looked_up(word: Word) -> Total | None:
    """A coroutine function."""
    return Total(word.text, 1)


async def streamed(word: Word) -> AsyncIterator[str]:
    """An async generator function."""
    yield word.text


def printed(word: Word) -> None:
    """No output at all."""


async def stored(word: Word) -> None:
    """No output either."""


def sorted_out(word: Word) -> Iterator[Total | To[str]]:
    """Outputs on two streams."""
    yield Total(word.text, 1)
    yield To(word.text, stream="odd")


def either(word: Word) -> Total | To[str] | None:
    """One output, on one of two streams."""
    return To(word.text, stream="odd") if len(word.text) % 2 else Total(word.text, 1)


def addressed(word: Word) -> To[Word]:
    """An output for one task."""
    return To(word, task=3)


def cut(word: Word, *, length: int) -> str:
    """With arguments of its own."""
    return word.text[:length]


class Cutter:
    """A callable object, and one with methods."""

    def __call__(self, word: Word) -> str:
        return word.text

    async def slowly(self, word: Word) -> str:
        """A bound method."""
        return word.text


assert_type(topology.bolt("length", length, words.shuffle()), Stream[int])
assert_type(topology.bolt("known", known, words.shuffle()), Stream[Total])
assert_type(topology.bolt("letters", letters, words.shuffle()), Stream[str])
assert_type(topology.bolt("pairs", pairs, words.shuffle()), Stream[tuple[str, int]])
assert_type(topology.bolt("looked up", looked_up, words.shuffle(), concurrency=8), Stream[Total])
assert_type(topology.bolt("streamed", streamed, words.shuffle()), Stream[str])
assert_type(topology.bolt("printed", printed, words.shuffle(), executor="thread"), Stream[None])
assert_type(topology.bolt("stored", stored, words.shuffle(), on_error="stop"), Stream[None])
assert_type(topology.bolt("print", print, words.shuffle()), Stream[None])
assert_type(topology.bolt("cut", partial(cut, length=3), words.shuffle()), Stream[str])
assert_type(topology.bolt("cutter", Cutter(), words.shuffle()), Stream[str])
assert_type(topology.bolt("method", Cutter().slowly, words.shuffle()), Stream[str])
assert_type(topology.bolt("lambda", lambda word: len(word.text), words.shuffle()), Stream[int])

TWO = {"default": Total, "odd": None}
parted = topology.bolt("sorted out", sorted_out, words.shuffle(), outputs=TWO)
assert_type(parted, Stream[Total])
assert_type(parted.named("odd"), Stream[object])
assert_type(parted.named("odd", str), Stream[str])
assert_type(topology.bolt("either", either, words.shuffle(), outputs=TWO), Stream[Total])
direct = topology.bolt("addressed", addressed, words.shuffle(), outputs=DirectStream(Word))
topology.bolt("at its address", length, direct.direct())


# Classes and factories.


class Count(BasicBolt[Word, Total]):
    """Outputs when there is no more input."""

    def __init__(self, start: int = 0) -> None:
        self.counts = Counter[str]()
        self.start = start

    def execute(self, tup: Tuple[Word], out: Collector[Total]) -> None:
        """Synchronous."""
        self.counts[tup.value.text] += 1

    async def finish(self, out: Collector[Total]) -> None:
        """Asynchronous."""
        for word, count in self.counts.items():
            out.emit(Total(word, self.start + count))


class Batches(BatchBolt[Word, Total]):
    """Outputs for a batch."""

    size = 10

    def key(self, value: Word) -> str:
        """Of these batches."""
        return value.text

    async def execute_batch(self, tups: Any, out: Collector[Total]) -> None:
        """All of a batch."""
        out.emit(Total("all", len(tups)))


class Join(Bolt[Word | Total, str]):
    """Takes the tuples of two streams."""

    def __init__(self) -> None:
        self.waiting: dict[str, Tuple[Word | Total]] = {}

    async def execute(self, tup: Tuple[Word | Total], out: Collector[str]) -> None:
        """Anchors to both."""
        match tup.value:
            case Word():
                self.waiting[tup.value.text] = tup
            case Total():
                other = self.waiting.pop(tup.value.word)
                tasks = out.emit(tup.value.word, anchors=(tup, other))
                assert_type(tasks, tuple[int, ...])
                out.ack(other)
                out.fail(tup, "too late", permanent=True)


def make_count() -> Count:
    """A factory."""
    return Count(1)


totals = topology.bolt("count", Count, words.fields("text"), parallelism=4)
assert_type(totals, Stream[Total])
assert_type(topology.bolt("made count", make_count, words.fields(0), words.fields()), Stream[Total])
assert_type(topology.bolt("lambda count", lambda: Count(1), words.fields()), Stream[Total])
assert_type(topology.bolt("partial count", partial(Count, 1), words.fields()), Stream[Total])
assert_type(topology.bolt("batches", Batches, words.partial_key(lambda word: word.text)), Stream[Total])


# State for each key.


class Cart(msgspec.Struct):
    """Can change in place."""

    words: list[str] = []


class Tally(KeyedBolt[str, Word, Total]):
    """Every kind of state."""

    total = Value(int, 0)
    mean = Value(float, 0.0, ttl=60)
    cart = Value(Cart)
    full = Value(Cart, factory=Cart)
    items = Value(list[str], factory=list)
    old = Value(int, 0, upgrade=len)
    prices: MapOf[str, float] = MapOf(str, float, ttl=60)
    latest: ListOf[Word] = ListOf(Word)
    counts = MapOf(str, int)
    named: Value[int] = Value(int, 0)

    def execute(self, tup: Tuple[Word], out: Collector[Total]) -> None:
        """Reads and writes it."""
        assert_type(self.key, str)
        assert_type(self.total, int)
        assert_type(self.cart, Cart | None)
        assert_type(self.full, Cart)
        assert_type(self.items, list[str])
        assert_type(self.prices, MutableMapping[str, float])
        assert_type(self.latest, MutableSequence[Word])
        assert_type(self.counts, MutableMapping[str, int])
        assert_type(self.named, int)
        self.total += 1
        self.mean = self.mean / 2 + self.total
        self.named = self.old
        self.cart = Cart()
        self.cart = None
        self.full.words.append(tup.value.text)
        self.prices["tea"] = 1.0
        self.prices = {}
        self.latest.append(tup.value)
        self.latest = []
        del self.total, self.prices, self.latest
        self.set_timer(self.now + 60)
        out.emit(Total(self.key, self.total))

    async def on_timer(self, at: float, out: Collector[Total]) -> None:
        """Later."""
        self.cancel_timer(at)

    def merge(self, other: Self) -> None:
        """Folds another state of the key in."""
        assert_type(other.total, int)
        assert_type(other.cart, Cart | None)
        assert_type(other.prices, MutableMapping[str, float])
        self.total += other.total
        self.latest.extend(other.latest)


class Merged(KeyedBolt[str, Word, Total]):
    """Names its own class."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Word], out: Collector[Total]) -> None:
        """Counts."""
        self.total += 1

    def merge(self, other: Merged) -> None:
        """Folds another state of the key in."""
        self.total += other.total


def tallied(word: Word, total: Cell[int]) -> Total:
    """A function with a state."""
    total.value += 1
    return Total(word.text, total.value)


def tallied_each(word: Word, total: Cell[int]) -> Iterator[Total | To[str]]:
    """Any number of outputs."""
    yield Total(word.text, total.value)


async def tallied_later(word: Word, cart: Cell[Cart | None]) -> Total | None:
    """One output or none."""
    assert_type(cart.value, Cart | None)
    return None


def tallied_only(word: Word, total: Cell[int]) -> None:
    """No output."""


assert_type(topology.bolt("tally", Tally, words.fields("text"), parallelism=4), Stream[Total])
assert_type(topology.bolt("lambda tally", lambda: Tally(), words.fields("text")), Stream[Total])
assert_type(topology.bolt("tallied", tallied, words.fields("text"), state=Value(int, 0)), Stream[Total])
assert_type(topology.bolt("tallied each", tallied_each, words.fields(), state=Value(int, 0)), Stream[Total])
assert_type(topology.bolt("tallied later", tallied_later, words.global_(), state=Value(Cart)), Stream[Total])
assert_type(topology.bolt("tallied only", tallied_only, words.fields(), state=Value(int, 0)), Stream[None])


# Joins, and bolts that can take more than they get.


def common(value: Word | Total) -> str:
    """For two streams."""
    return value.text if isinstance(value, Word) else value.word


def commons(value: Word | Total) -> Iterator[str]:
    """For two streams."""
    yield common(value)


async def common_soon(value: Word | Total | int) -> str | None:
    """For three."""
    return str(value)


async def commons_soon(value: Word | Total) -> AsyncIterator[str]:
    """For two streams."""
    yield common(value)


def anything(value: object) -> str:
    """For all streams."""
    return repr(value)


lengths = topology.bolt("lengths", length, words.shuffle())
both = words.fields("text"), totals.fields("word")
assert_type(topology.bolt("join", Join, *both), Stream[str])
assert_type(topology.bolt("join words", Join, words.fields("text")), Stream[str])
assert_type(topology.bolt("join made", lambda: Join(), *both), Stream[str])
assert_type(topology.bolt("common", common, words.all(), totals.all()), Stream[str])
assert_type(topology.bolt("common words", common, words.all()), Stream[str])
assert_type(topology.bolt("commons", commons, words.none(), totals.none()), Stream[str])
assert_type(topology.bolt("soon", common_soon, words.all(), totals.all(), lengths.all()), Stream[str])
assert_type(topology.bolt("commons soon", commons_soon, words.all(), totals.all()), Stream[str])
assert_type(topology.bolt("anything", anything, words.global_(), totals.all(), tables.shuffle()), Stream[str])
topology.connect(totals, words.fields("text"))


# What the host does.


async def host() -> None:
    """Emit, await, collect."""
    async with topology.run(seed=1, drain_timeout=5.0, dead_letters="dead.jsonl") as running:
        tree = await running.emit(words, Word("a"), collect=totals)
        assert_type(tree, Tree[Total])
        assert_type(tree.explain(), Explanation)
        assert_type(running.explain_oldest(most=3)[0].outstanding[0].stack, tuple[Call, ...])
        counts = [total.count for total in await tree]
        assert_type(counts, list[int])
        assert_type(await running.emit(words, Word("b"), attempts=3, origin="here"), Tree[object])
        await running.finished()
        assert_type(running.statistics().components["count"].acked, int)


def program() -> None:
    """Run where there is no loop yet."""
    statistics = run(topology, seed=1, drain_timeout=None, queue_capacity=64, **SETTINGS)
    assert_type(statistics.dead_letters, int)


# Sources of Spark's.


def frame_sources(df: DataFrame) -> None:
    """What a DataFrame's rows become is what the stream is of."""
    assert_type(topology.spout("records", DataFrameSpout(df, as_=Word)), Stream[Word])
    assert_type(topology.spout("rows", DataFrameSpout(df, Word, transport="rows")), Stream[Word])
    assert_type(topology.spout("tuples", DataFrameSpout(df, columns=["text"])), Stream[tuple[Any, ...]])
    assert_type(topology.spout("batches", DataFrameSpout(df, batches=True)), Stream[RecordBatch])
    streamed = topology.spout("streamed", outputs=Word)
    stream(df, topology, into=streamed, as_=Word, checkpoint="at", trigger={"availableNow": True})
    stream(df, topology, into=topology.spout("fields", outputs=["text"]), checkpoint="at")
    epochs = DataFrameSpout(df, as_=Word, checkpoint="words.state", epoch_rows=100_000)
    assert_type(topology.spout("epochs", epochs), Stream[Word])


def frame_sinks(words: Stream[Word], numbers: Stream[int]) -> None:
    """A sink takes any stream, and several; it emits nothing."""
    assert_type(topology.bolt("write", DataFrameSink("out"), words.shuffle()), Stream[None])
    assert_type(topology.bolt("once", DataFrameSink("out", exactly_once=True), words.shuffle()), Stream[None])
    assert_type(topology.bolt("both", DataFrameSink("out"), words.shuffle(), numbers.shuffle()), Stream[None])


# The test kit.


def kit() -> None:
    """Results have the types of the streams and of the bolt."""
    result = complete(topology, {"words": WORDS}, seed=3, allow_leaks=["inputs"])
    assert_type(result.emitted(totals), list[Total])
    assert_type(result[totals], list[Total])
    assert_type(result["totals"], list[Any])
    assert_type(run_bolt(length, WORDS), BoltResult[Word, int])
    assert_type(run_bolt(known, [Input(word, after=3.0) for word in WORDS]).emitted(), list[Total])
    assert_type(run_bolt(letters, WORDS).emitted(), list[str])
    assert_type(run_bolt(looked_up, WORDS, concurrency=2).emitted(), list[Total])
    assert_type(run_bolt(streamed, WORDS, seconds=3.0), BoltResult[Word, str])
    assert_type(run_bolt(Count, WORDS, tick=1.0).acked, list[Word])
    assert_type(run_bolt(partial(Count), WORDS).inputs[0].value, Word)


async def kit_soon() -> None:
    """The same in a coroutine."""
    assert_type((await complete_async(topology, {words: WORDS})).emitted(totals), list[Total])
    assert_type(await run_bolt_async(Count, WORDS), BoltResult[Word, Total])


def hands() -> None:
    """Feeders are sources, scripted and collecting bolts are logic."""
    feeder, seen = Feeder[Word](), CollectingBolt[Word]()
    assert_type(topology.spout("fed by hand", feeder), Stream[Word])
    assert_type(topology.bolt("seen", seen, words.shuffle()), Stream[None])
    assert_type(seen.values, list[Word])
    script = ScriptedBolt({Word("a"): [Fail("once"), Ack()]})
    topology.bolt("scripted", script, words.shuffle())
    assert_type(script.held, list[Word])
    assert_type(feeder.acked, list[Word])


def brokers() -> None:
    """Sources have the type of ``as_``, and what a message is without one."""
    url = "amqp://mq"
    assert_type(topology.spout("1", files.Lines("orders", bookmark="mark", as_=Word)), Stream[Word])
    assert_type(topology.spout("2", kafka.Topics(url, ["orders"], group="g", as_=Word)), Stream[Word])
    assert_type(topology.spout("3", kestrel.Queue(url, "orders", as_=str)), Stream[str])
    assert_type(topology.spout("4", nats.Stream(url, "orders", consumer="c", as_=Word)), Stream[Word])
    assert_type(topology.spout("5", postgres.Queue(url, "orders", as_=Word)), Stream[Word])
    changes = postgres.Changes(url, slot="s", publication="p")
    assert_type(topology.spout("6", changes), Stream[postgres.Change])
    assert_type(topology.spout("7", rabbitmq.Queue(url, "orders", as_=Word)), Stream[Word])
    assert_type(topology.spout("8", redis.Stream(url, "orders", group="g", as_=Word)), Stream[Word])
    assert_type(topology.spout("9", kafka.Topics(url, ["orders"], group="g")), Stream[Received])
    assert_type(topology.spout("10", rabbitmq.Queue(url, "orders")), Stream[Received])
