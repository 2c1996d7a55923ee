"""Calls that must be rejected: each marked line by the checkers that its mark names, and no other line."""

from __future__ import annotations

import msgspec
from pyspark.sql import DataFrame

from stormlet import BasicBolt, Bolt, Collector, Running, Spout, SpoutCollector, Stream, Topology, Tuple, run
from stormlet.spark import stream
from stormlet.testing import CollectingBolt, Feeder, ScriptedBolt, complete, run_bolt


class Word(msgspec.Struct):
    """On one stream."""

    text: str


class Total(msgspec.Struct):
    """On another one."""

    count: int


class Count(Bolt[Word, Total]):
    """Misuses its collector."""

    def execute(self, tup: Tuple[Word], out: Collector[Total]) -> None:
        out.emit(tup.value)  # error: mypy, pyright
        out.emit(Total(1), tup)  # error: mypy, pyright
        out.emit(Total(1), anchors=tup.value)  # error: mypy, pyright
        out.emit(Total(1), message_id=7)  # error: mypy, pyright
        out.emit(Total(1), stream=7)  # error: mypy, pyright
        out.ack(tup.value)  # error: mypy, pyright
        out.fail(tup, "never", True)  # error: mypy, pyright
        out.commit()  # error: mypy, pyright
        tup.value.count  # error: mypy, pyright


class Wrong(BasicBolt[Word, Total]):
    """Its methods do not fit the class."""

    def execute(self, tup: Tuple[Total], out: Collector[Total]) -> None:  # error: mypy, pyright
        """Another input."""

    def finish(self) -> None:  # error: mypy, pyright
        """No collector."""


class Words(Spout[Word]):
    """Misuses its collector."""

    def next_tuple(self, out: SpoutCollector[Word]) -> None:
        out.emit(Total(1), message_id=1)  # error: mypy, pyright
        out.emit(Word("a"), anchors=())  # error: mypy, pyright
        out.emit_many([Total(1)], message_ids=[1])  # error: mypy, pyright
        out.emit_many([Word("a")])  # error: mypy, pyright
        out.ack(Word("a"))  # error: mypy, pyright

    def fail(self, message_id: object) -> None:  # error: mypy, pyright
        """No failure."""


def length(word: Word) -> int:
    return len(word.text)


topology = Topology("wrong")
words = topology.spout("words", [Word("a")])
totals = topology.bolt("lengths", length, words.shuffle())

# Options.
topology.bolt("a", length, words.shuffle(), parallelism="2")  # error: mypy, pyright
topology.bolt("b", length, words.shuffle(), parallelsim=2)  # error: mypy, pyright
topology.bolt("c", length, words.shuffle(), executor="process")  # error: mypy, pyright
topology.bolt("d", length, words.shuffle(), on_error="ignore")  # error: mypy, pyright
topology.bolt("e", length, words.shuffle(), max_attempts=2)  # error: mypy, pyright
topology.spout("f", [1], tick=1.0)  # error: mypy, pyright
topology.spout("g", [1], max_spout_pending=0.5)  # error: mypy, pyright
topology.bolt("h", length, words.shuffle(), max_restart=2)  # error: mypy, pyright
topology.spout("i", [1], max_spout_pendign=2)  # error: mypy, pyright
Topology("j", ackerz=2)  # error: mypy, pyright
Topology("k", message_timeout="30")  # error: mypy, pyright
Topology("l", timeout_restarts_on="never")  # error: mypy, pyright
topology.run(drain_timout=5.0)  # error: mypy, pyright
topology.run(max_spout_pending="10")  # error: mypy, pyright
topology.run(queue_capacity=None)  # error: mypy, pyright
run(topology, max_spout_pendign=10)  # error: mypy, pyright
run(topology, ackers="two")  # error: mypy, pyright
topology.run(7)  # error: mypy, pyright
topology.run(dead_letters=7)  # error: mypy, pyright
topology.run(sources=[1])  # error: mypy, pyright


async def host(running: Running) -> None:
    """Emits the wrong thing, and takes what it gets for another."""
    await running.emit(words, Total(1))  # error: mypy, pyright
    await running.emit(words, "a")  # error: mypy, pyright
    await running.emit(words.shuffle(), Word("a"))  # error: mypy, pyright
    await running.emit("words", Word("a"))  # error: mypy, pyright
    await running.emit(words, Word("a"), collect="lengths")  # error: mypy, pyright
    tree = await running.emit(words, Word("a"), collect=totals)
    text: str = (await tree)[0]  # error: mypy, pyright
    nothing: list[int] = await running.emit(words, Word("a"), collect=totals)  # error: mypy, pyright


def kit() -> None:
    """Misuses the test kit."""
    complete(topology, [Word("a")])  # error: mypy, pyright
    complete(topology, allow_leaks=["input"])  # error: mypy, pyright
    complete("words")  # error: mypy, pyright
    run_bolt(length, [1])  # error: mypy, pyright
    run_bolt(length, [Word("a")], tik=1.0)  # error: mypy, pyright
    counts: list[str] = run_bolt(length, [Word("a")]).emitted()  # error: mypy, pyright
    Feeder[Word]().feed("a")  # error: mypy, pyright
    topology.bolt("seen", CollectingBolt[Total](), words.shuffle())  # error: mypy, pyright
    ScriptedBolt({"a": "ack"})  # error: mypy, pyright


def streams(df: DataFrame, topology: Topology, words: Stream[Word]) -> None:
    """What a streaming DataFrame feeds must be of the spout's type."""
    stream(df, topology, into=words, as_=Total, checkpoint="at")  # error: mypy, pyright
    stream(df, topology, into=words)  # error: mypy, pyright
    stream(df, topology, into=words, checkpoint="at", on_failure="stop")  # error: mypy, pyright
    stream(df, topology, into=words, checkpoint="at", trigger={"once": True})  # error: mypy, pyright
