"""Whole topologies on given values."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    DirectStream,
    FailureKind,
    InvalidConfiguration,
    InvalidTopology,
    Reject,
    Spout,
    SpoutCollector,
    Stream,
    To,
    Topology,
    TopologyCrashed,
    Tuple,
    run,
)
from stormlet.errors import EndOfStream, StateUnusable
from stormlet.testing import (
    Ack,
    Delay,
    Fail,
    Feeder,
    Hold,
    Leaked,
    NotCompleted,
    ScriptedBolt,
    complete,
    complete_async,
)


class Total(msgspec.Struct, frozen=True):
    """How often a word was seen."""

    word: str
    count: int


class Count(BasicBolt[str, Total]):
    """Counts, and tells the sum at the end."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute(self, tup: Tuple[str], out: Collector[Total]) -> None:
        self.counts[tup.value] += 1
        out.emit(Total(tup.value, self.counts[tup.value]))

    def finish(self, out: Collector[Total]) -> None:
        out.emit(Total("", self.counts.total()), stream="sum")


def endless() -> Iterator[str]:
    """What the topology reads in production."""
    raise AssertionError("the real source was read")
    yield ""


def split(sentence: str) -> Iterator[str | To[object]]:
    """Words, and what was odd about them on another stream."""
    for word in sentence.split():
        if word == "bad":
            raise Reject("a bad word")
        yield word
    if not sentence:
        yield To("empty", stream="odd")


class WordCount:
    """The topology under test."""

    def __init__(self, **options: object) -> None:
        self.topology = Topology("word-count", **options)
        self.lines: Stream[str] = self.topology.spout("lines", endless)
        self.words: Stream[str] = self.topology.bolt(
            "split", split, self.lines.shuffle(), parallelism=2, outputs={"default": None, "odd": None}
        )
        self.totals = self.topology.bolt(
            "count", Count, self.words.fields(), outputs={"default": Total, "sum": Total}
        )


def test_what_every_component_has_emitted_is_told_by_stream() -> None:
    """In order, by id, by id and stream, or by the stream itself; unsubscribed streams and the end included."""
    words = WordCount()
    result = complete(words.topology, {"lines": ["a b", "", "a"]})
    assert result["lines"] == result[words.lines] == ["a b", "", "a"]
    assert sorted(result["split"]) == ["a", "a", "b"]
    assert result.emitted("split", "odd") == result.emitted(words.words.named("odd")) == ["empty"]
    assert Counter(result.emitted(words.totals)) == Counter([Total("a", 1), Total("b", 1), Total("a", 2)])
    assert result.emitted("count", "sum") == [Total("", 3)]
    assert {each.during for each in result.emissions if each.stream == "sum"} == {"finish"}


def test_the_topology_is_as_it_was() -> None:
    """Given values are for one run: the next one reads the real source again."""
    words = WordCount()
    complete(words.topology, {words.lines: ["a"]})
    with pytest.raises(TopologyCrashed) as crash:
        complete(words.topology)
    assert "the real source was read" in str(crash.value.__cause__)


def test_what_became_of_each_message_is_told() -> None:
    """Acked or failed, why, after how many attempts, in the order of the source; and which are dead letters."""
    words = WordCount(max_attempts=3)
    result = complete(words.topology, {"lines": ["a", "bad", "b"]})
    assert (result.acked, result.failed) == (["a", "b"], ["bad"])
    assert [each.value for each in result.outcomes] == ["a", "bad", "b"]
    bad = result.outcome("bad")
    assert (bad.component, bad.message_id, bad.attempts, bad.acked) == ("lines", 1, 1, False)
    assert bad.failure is not None
    assert (bad.failure.component, bad.failure.reason) == ("split", "a bad word")
    assert [letter.value for letter in result.dead_letters] == ["bad"]
    assert result.statistics.dead_letters == 1


def scripted(bolt: ScriptedBolt[Any], **options: object) -> Topology:
    topology = Topology("scripted", **options)
    topology.bolt("bolt", bolt, topology.spout("values").shuffle())
    return topology


def test_replays_are_attempts_of_one_message() -> None:
    """Their failures are kept, and each attempt is an emission."""
    bolt = ScriptedBolt({"a": [Fail("one"), Fail("two"), Ack()]})
    result = complete(scripted(bolt), {"values": ["a", "b"]})
    outcome = result.outcome("a")
    assert (outcome.acked, outcome.attempts, outcome.failure) == (True, 3, None)
    assert [failure.reason for failure in outcome.history] == ["one", "two"]
    assert result["values"] == ["a", "b", "a", "a"]
    assert result.outcome("b").attempts == 1
    assert 0.2 < result.seconds < 0.5


class Ids(Spout[str]):
    """Emits two messages under one id, one after the other, what fails once more, and an untracked one."""

    def __init__(self, id: object) -> None:
        self.id = id
        self.left = ["first", "second"]
        self.ended = False

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        if self.ended:
            raise EndOfStream
        if self.left and not out.pending:
            out.emit(self.left.pop(0), message_id=self.id)
        elif not out.pending:
            out.emit("untracked")
            self.ended = True

    def fail(self, message_id: object, failure: object) -> None:
        self.left.append("second")


@pytest.mark.parametrize("id", ["hashable", ["not hashable"]])
def test_messages_of_a_spout_class_are_told_by_their_ids(id: object) -> None:
    """The same id after an ack is another message, after a failure another attempt; untracked ones have no outcome."""
    topology = Topology("ids")
    bolt = ScriptedBolt({"second": [Fail("once"), Ack()]})
    topology.bolt("bolt", bolt, topology.spout("ids", partial(Ids, id)).shuffle())
    result = complete(topology)
    assert [(each.value, each.message_id, each.attempts, each.acked) for each in result.outcomes] == [
        ("first", id, 1, True),
        ("second", id, 2, True),
    ]
    assert result["ids"] == ["first", "second", "second", "untracked"]


def test_spouts_that_only_the_host_feeds_are_silent() -> None:
    """They have nothing to say unless values are given for them, and do not keep the topology from its end."""
    topology = Topology("two")
    one, other = topology.spout("one"), topology.spout("other")
    both = topology.bolt("both", str.upper, one.shuffle(), other.shuffle())
    assert complete(topology, {one: ["a"]})[both] == ["A"]
    assert complete(topology)[both] == []


def test_a_spout_of_several_tasks_gives_its_values_once() -> None:
    """Storm deals them to the tasks; here the spout has one."""

    class Several(Spout[str]):
        def next_tuple(self, out: SpoutCollector[str]) -> None:
            raise AssertionError("the real source was asked")

    topology = Topology("several")
    lines = topology.spout("lines", Several, parallelism=3)
    topology.bolt("upper", str.upper, lines.shuffle())
    assert complete(topology, {"lines": ["a", "b"]})["upper"] == ["A", "B"]


def test_a_feeder_is_a_source_like_any_other() -> None:
    """What was fed before the run is there, and its outcomes are noted."""
    feeder = Feeder[str]()
    feeder.feed("a b")
    feeder.end()
    words = WordCount()
    assert complete(words.topology, {words.lines: feeder})["split"] == ["a", "b"]
    assert feeder.acked == ["a b"]


def test_time_is_simulated_and_the_seed_repeats_it() -> None:
    """Hours take no time, and the same seed gives the same order, of several tasks too."""
    bolt = ScriptedBolt[str](default=Delay(3600.0))
    assert complete(scripted(bolt, message_timeout=None), {"values": ["a", "b"]}).seconds == 7200.0

    def run(seed: int) -> list[object]:
        lines = [f"{number} {number + 1}" for number in range(50)]
        return [each.value for each in complete(WordCount().topology, {"lines": lines}, seed=seed).emissions]

    assert run(1) == run(1)


def test_configuration_is_for_this_run() -> None:
    """Options override those of the topology, as in Topology.run."""
    bolt = ScriptedBolt[str](default=Fail("always"))
    topology = scripted(bolt, max_attempts=5)
    assert complete(topology, {"values": ["a"]}, max_attempts=2).outcome("a").attempts == 2


@pytest.mark.simulated_time
async def test_in_a_coroutine_it_is_awaited() -> None:
    """On the loop of the test and in its time; the other form says so."""
    words = WordCount()
    result = await complete_async(words.topology, {words.lines: ["a"]})
    assert result[words.totals] == [Total("a", 1)]
    with pytest.raises(RuntimeError, match=r"write await complete_async\(\.\.\.\)"):
        complete(words.topology)


@pytest.mark.simulated_time
async def test_what_runs_afterwards_is_another_run() -> None:
    """In the same test: what is emitted there is none of the result's."""
    words = WordCount()
    result = await complete_async(words.topology, {words.lines: ["a"]})
    async with words.topology.run(sources={"lines": ["c"]}) as running:
        await running.finished()
    assert result[words.lines] == ["a"]


def test_direct_streams_are_told_too() -> None:
    """What is sent to a task that the producer names."""
    topology = Topology("direct")
    values = topology.spout("values", outputs=DirectStream(None))
    topology.bolt("bolt", ScriptedBolt[str](), values.direct(), parallelism=2)
    result = complete(topology, {"values": [To("a", task=4), To("b", task=3)]})
    assert (result["values"], result.acked) == (["a", "b"], ["a", "b"])


def test_it_runs_in_real_time_too() -> None:
    """On any loop: what it tells is the same."""
    result = asyncio.run(complete_async(WordCount().topology, {"lines": ["a b"]}))
    assert result["split"] == ["a", "b"]


async def ticking() -> AsyncIterator[str]:
    """A source that has something every ten seconds, for ever."""
    while True:
        await asyncio.sleep(10)
        yield "tick"


def test_a_source_without_an_end_is_named() -> None:
    """After the time limit, a day by default, with what to write."""
    topology = Topology("ticking")
    topology.bolt("ignore", ScriptedBolt[str](), topology.spout("ticks", ticking).shuffle())
    with pytest.raises(NotCompleted) as not_completed:
        complete(topology, time_limit=100.0)
    assert str(not_completed.value) == (
        "topology 'ticking' was not done after 100 s:\n"
        "  spout 'ticks' has not ended; give it values with sources={'ticks': [...]}"
    )


def test_an_input_that_is_held_for_ever_is_named() -> None:
    """Without timeouts the run comes to no end, and the bolt that holds the tuple is named."""
    topology = scripted(ScriptedBolt[str](default=Hold()), message_timeout=None)
    with pytest.raises(NotCompleted, match=r"bolt\[0\] never acked or failed <Tuple 'a' from 'values'"):
        complete(topology, {"values": ["a"]})


def test_leaks_are_errors() -> None:
    """An input that was never settled is told although its message timed out; it can be allowed."""
    bolt = ScriptedBolt({"b": Hold()})
    with pytest.raises(Leaked, match=r"bolt\[0\] never acked or failed <Tuple 'b'") as leaked:
        complete(scripted(bolt), {"values": ["a", "b"]}, max_attempts=1)
    assert [leak.kind for leak in leaked.value.leaks] == ["inputs"]
    result = complete(scripted(bolt), {"values": ["a", "b"]}, max_attempts=1, allow_leaks=["inputs"])
    failure = result.outcome("b").failure
    assert failure is not None
    assert (failure.kind, failure.holders) == (FailureKind.TIMEOUT, ("bolt",))


def test_a_value_that_is_changed_after_its_emit_is_an_error() -> None:
    """The component that emitted it is named, and what it was."""

    class Remembers(Bolt[str, list[str]]):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def execute(self, tup: Tuple[str], out: Collector[list[str]]) -> None:
            self.seen.append(tup.value)
            out.emit(self.seen, anchors=tup)
            out.ack(tup)

    topology = Topology("remembers")
    topology.bolt("list", Remembers, topology.spout("values", ["a", "b"]).shuffle())
    with pytest.raises(Leaked, match=r"list\[0\] emitted \['a'\] .* changed afterwards to \['a', 'b'\]"):
        complete(topology)
    assert len(complete(topology, allow_leaks=["values"])["list"]) == 2


class AcksFirst(Bolt[str, str]):
    """Loses each output: it may not be anchored any more."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.ack(tup)
        out.emit(tup.value, anchors=tup)


def test_an_exception_for_which_no_tuple_answers_is_an_error() -> None:
    """One line for all inputs has the component, its task, the exception and its line; it can be allowed."""
    topology = Topology("acks first")
    topology.bolt("early", AcksFirst, topology.spout("values", ["a", "b"]).shuffle())
    named = (
        r"early\[0\] raised AlreadySettled\(.* in execute \(test_completing\.py:\d+\) on 'a', already "
        r"settled \(2 times\)$"
    )
    with pytest.raises(Leaked, match=named) as leaked:
        complete(topology)
    assert [leak.kind for leak in leaked.value.leaks] == ["errors"]
    result = complete(topology, allow_leaks=["errors"])
    assert (result.acked, result["early"]) == (["a", "b"], [])


def test_each_task_and_line_that_raises_is_told() -> None:
    """Two tasks of one bolt are two lines, and so are two lines of one method."""

    class Slips(AcksFirst):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            out.ack(tup)
            if tup.value == "a":
                raise LookupError
            raise LookupError

    topology = Topology("slips")
    topology.bolt("slips", Slips, topology.spout("values", [*"aabb"]).shuffle(), parallelism=2)
    with pytest.raises(Leaked) as leaked:
        complete(topology)
    assert sorted(leak.text.split(" raised")[0] for leak in leaked.value.leaks) == [
        f"topology 'slips': slips[{task}]" for task in (0, 0, 1, 1)
    ]


def test_an_exception_that_fails_its_input_is_no_error() -> None:
    """The tuple answers for it, also where its task dies of it."""

    def boom(value: str) -> None:
        raise LookupError(value)

    topology = Topology("fails")
    values = topology.spout("values", ["a"])
    topology.bolt("fails", boom, values.shuffle())
    topology.bolt("dies", boom, values.shuffle(), on_error="restart")
    assert complete(topology, max_attempts=2).failed == ["a"]


def test_crashes_come_out() -> None:
    """An exception that stops a topology is raised as from its block."""
    topology = Topology("crashes")

    def boom(value: object) -> None:
        raise LookupError(value)

    topology.bolt("boom", boom, topology.spout("values", ["a"]).shuffle(), on_error="stop")
    with pytest.raises(TopologyCrashed, match="boom") as crash:
        complete(topology)
    assert isinstance(crash.value.__cause__, LookupError)


def test_wrong_names_are_refused() -> None:
    """Of spouts, of streams, of leaks, of values: each message lists what there is."""
    words = WordCount()
    with pytest.raises(InvalidTopology, match="spouts: 'lines'"):
        complete(words.topology, {"line": []})
    with pytest.raises(InvalidConfiguration, match="inputs, trees, values, errors, tasks, threads"):
        complete(words.topology, {"lines": []}, allow_leaks=["input"])  # type: ignore[list-item]
    result = complete(words.topology, {"lines": []})
    with pytest.raises(
        KeyError, match="no stream 'default' of 'splitt'; there are 'default' of 'lines', 'def"
    ):
        result["splitt"]
    with pytest.raises(KeyError, match="no message had the value 'a'"):
        result.outcome("a")


@pytest.mark.parametrize("given", [5, True, b"orders.state", object])
def test_what_is_neither_a_path_nor_a_store_is_refused(given: Any) -> None:
    """Wherever it is given: a run in real time says the same."""
    topology = Topology("state")
    topology.bolt("see", str.upper, topology.spout("lines", ["a"]).shuffle())
    says = r"^state=.* is neither a path nor a store, as it has no load\(\); give the path of a file, such as"
    calls: list[Any] = [complete, run]
    for call in calls:
        with pytest.raises(StateUnusable, match=says):
            call(topology, state=given)


def test_it_shows_itself_in_short() -> None:
    """For the message of a failing assertion."""
    result = complete(WordCount().topology, {"lines": ["a a", "bad"]})
    emitted = "lines/default: 2, split/default: 2, count/default: 2, count/sum: 1"
    assert repr(result) == f"<Completed emitted {{{emitted}}}, acked 1, failed 1>"
