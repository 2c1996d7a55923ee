"""Bolts with keyed state in a run: what they see, what is forgotten, what survives (law K1 to K4, X6, X7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from stormlet import (
    Bolt,
    Cell,
    Collector,
    EndOfStream,
    EpochFailed,
    KeyedBolt,
    Reject,
    Spout,
    SpoutCollector,
    TaskContext,
    TaskHook,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.errors import InvalidTopology, StateUnusable
from stormlet.model.state.keyed import states_of
from stormlet.state.memory import MemoryStore
from tests.helpers import run_to_end

pytestmark = pytest.mark.simulated_time


class Count(KeyedBolt[str, str, tuple[str, int]]):
    """Counts words."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[tuple[str, int]]) -> None:
        self.total += 1
        out.emit((self.key, self.total))


def kept(
    store: MemoryStore, component: str = "count", bolt: type = Count, name: str = "total"
) -> dict[str, object]:
    """All that a store has of one state."""
    state = State(StateId(component, name), states_of(bolt)[name])
    state.load(store.load().states.get(state.id, ()))
    return dict(state.tables[0].committed_items())


def counting(words: str, **options: object) -> tuple[Topology, list[tuple[str, int]]]:
    """A word count over the letters of a text, and what it has emitted."""
    topology = Topology("count", **options)  # type: ignore[arg-type]
    counts = topology.bolt("count", Count, topology.spout("words", list(words)).fields(), parallelism=2)
    seen: list[tuple[str, int]] = []
    topology.bolt("see", seen.append, counts.shuffle())
    return topology, seen


async def run(topology: Topology, store: MemoryStore) -> None:
    async with topology.run(state=store) as running:
        await running.finished()


async def test_K5_the_next_run_goes_on_with_the_state() -> None:
    """Whatever its parallelism (law K5)."""
    topology, _ = counting("abc")
    store = MemoryStore()
    await run(topology, store)
    longer = Topology("count")
    longer.bolt("count", Count, longer.spout("words", list("abcab")).fields(), parallelism=3)
    await run(longer, store)
    assert kept(store) == {"a": 2, "b": 2, "c": 1}


async def test_K4_without_a_store_state_is_in_memory() -> None:
    """Everything holds but surviving the process (law K9)."""
    topology, seen = counting("aa")
    async with topology.run() as running:
        await running.finished()
    assert seen == [("a", 1), ("a", 2)]


async def test_X7_words_that_are_rejected_after_the_count_are_all_left_out_at_once() -> None:
    """The epoch goes on to its end, and is done again without them: each word is counted twice at most, in one
    commit."""
    counted: list[str] = []

    class Count(KeyedBolt[str, str, str]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            counted.append(tup.value)
            self.total += 1
            out.emit(tup.value)

    def reject(word: str) -> None:
        if word in "bdf":
            raise Reject("never")

    topology = Topology("rejecting")
    counts = topology.bolt("count", Count, topology.spout("words", list("abcdefg")).fields())
    topology.bolt("reject", reject, counts.shuffle())
    store = MemoryStore()
    async with topology.run(state=store) as running:
        await running.finished()
    assert sorted(letter.value for letter in running.dead_letters) == ["b", "d", "f"]
    assert kept(store) == dict.fromkeys("aceg", 1)
    assert (store.load().epoch, counted) == (1, [*"abcdefg", *"aceg"])


async def test_X6_what_raises_before_it_has_changed_state_spoils_nothing() -> None:
    """It is replayed on its own (law X6)."""
    attempts: list[str] = []

    class Unsure(KeyedBolt[str, str, None]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            attempts.append(tup.value)
            if attempts.count("b") == 1 and tup.value == "b":
                raise ValueError("not yet")
            self.total += 1

    topology = Topology("unsure", replay_delay=0.01)
    topology.bolt("count", Unsure, topology.spout("words", list("abc")).fields())
    store = MemoryStore()
    await run(topology, store)
    assert attempts == ["a", "b", "c", "b"]
    assert kept(store) == {"a": 1, "b": 1, "c": 1}


async def test_K3_what_raises_after_it_has_changed_state_spoils_the_attempt() -> None:
    """It has reached state (law K3)."""
    attempts: list[str] = []

    class Rash(KeyedBolt[str, str, None]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            attempts.append(tup.value)
            self.total += 1
            if attempts.count("b") == 1 and tup.value == "b":
                raise ValueError("too late")

    topology = Topology("rash", replay_delay=0.01)
    topology.bolt("count", Rash, topology.spout("words", list("abc")).fields())
    store = MemoryStore()
    await run(topology, store)
    assert kept(store) == {"a": 1, "b": 1, "c": 1}
    assert attempts.count("a") == 2


async def test_K2_calls_of_one_key_wait_for_each_other() -> None:
    """Those of different keys overlap (law K2)."""
    topology = Topology("slow")

    class Slow(KeyedBolt[str, str, None]):
        total = Value(int, 0)

        async def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            total = self.total
            await asyncio.sleep(1)
            self.total = total + 1

    topology.bolt("count", Slow, topology.spout("words", list("aabb")).fields(), concurrency=4)
    store = MemoryStore()
    began = asyncio.get_running_loop().time()
    await run(topology, store)
    assert asyncio.get_running_loop().time() - began == pytest.approx(2.0)
    assert kept(store) == {"a": 2, "b": 2}


async def test_K7_a_timer_fires_once_and_survives() -> None:
    """Never early, also when nothing else comes (law W7)."""
    fired: list[tuple[str, float]] = []

    class Reminder(KeyedBolt[str, str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.set_timer(self.now + 60)

        def on_timer(self, at: float, out: Collector[str]) -> None:
            fired.append((self.key, asyncio.get_running_loop().time()))
            out.emit(self.key)

    topology = Topology("timers")
    words = topology.spout("words")
    reminded = topology.bolt("remind", Reminder, words.fields())
    seen: list[str] = []
    topology.bolt("see", seen.append, reminded.shuffle())
    store = MemoryStore()
    async with topology.run(state=store) as running:
        await (await running.emit(words, "a"))
        await asyncio.sleep(10)
    assert (fired, seen) == ([], [])
    async with topology.run(state=store) as running:
        await asyncio.sleep(100)
    assert (fired, seen) == ([("a", 60.0)], ["a"])


async def test_K4_a_bolt_that_dies_loses_no_state() -> None:
    """It belongs to the task, and the next instance goes on with it."""
    topology, seen = counting("abab")
    store = MemoryStore()
    async with topology.run(state=store) as running:
        running.kill("count", 0)
        running.kill("count", 1)
        await running.finished()
    assert kept(store) == {"a": 2, "b": 2}
    assert len(seen) == 4


async def test_K5_state_whose_bolt_is_gone_fails_the_start() -> None:
    """It is named, and nothing is dropped without a word."""
    topology, _ = counting("ab")
    store = MemoryStore()
    await run(topology, store)
    other = Topology("count")
    other.bolt("tally", Count, other.spout("words", list("ab")).fields())
    with pytest.raises(StateUnusable, match=r"state 'count\.total' belongs to no bolt of this topology"):
        await run(other, store)


async def test_K5_keys_of_another_type_fail_the_start() -> None:
    """They would be other keys."""

    class ByNumber(KeyedBolt[int, int, None]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            self.total += 1

    topology, _ = counting("ab")
    store = MemoryStore()
    await run(topology, store)
    other = Topology("count")
    other.bolt("count", ByNumber, other.spout("numbers", [1, 2]).fields())
    with pytest.raises(
        StateUnusable, match="is a value by keys of type str, and the bolt declares a value by int"
    ):
        await run(other, store)


async def test_K6_a_value_that_was_not_written_for_long_reads_as_absent() -> None:
    """On the clock (law K6)."""
    seen: list[int] = []

    class Forgetful(KeyedBolt[str, str, None]):
        total = Value(int, 0, ttl=60)

        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            self.total += 1
            seen.append(self.total)

    topology = Topology("forgetful")
    words = topology.spout("words")
    topology.bolt("count", Forgetful, words.fields())
    async with topology.run() as running:
        for pause in (30, 30, 61, 0):
            await (await running.emit(words, "a"))
            await asyncio.sleep(pause)
    assert seen == [1, 2, 3, 1]


async def test_X6_a_bolt_with_state_needs_ackers() -> None:
    """Epochs live by acks (law X5)."""
    topology, _ = counting("ab", ackers=0)
    with pytest.raises(InvalidTopology, match="state needs acks, and ackers=0 has none; set ackers to 1"):
        topology.run()


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_K7_a_timer_whose_call_raises_fires_again() -> None:
    """The attempt is forgotten with what the call had done (law X7)."""
    fired: list[str] = []

    class Reminder(KeyedBolt[str, str, None]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            self.set_timer(self.now + 60)

        def on_timer(self, at: float, out: Collector[None]) -> None:
            self.total += 1
            fired.append(self.key)
            if len(fired) == 1:
                raise ValueError("once")

    topology = Topology("timers")
    words = topology.spout("words")
    topology.bolt("remind", Reminder, words.fields())
    store = MemoryStore()
    async with topology.run(state=store) as running:
        await (await running.emit(words, "a"))
        await asyncio.sleep(100)
    assert fired == ["a", "a"]
    assert kept(store, "remind", Reminder) == {"a": 1}


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_K7_a_timer_whose_call_returns_a_value_has_raised(is_async: bool) -> None:
    """Nothing takes it, as of an execute: without a word it would be lost, and the timer is taken."""

    class Reports(KeyedBolt[str, str, str]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.set_timer(self.now)

        def on_timer(self, at: float, out: Collector[str]) -> Any:
            return asyncio.sleep(0, "late") if is_async else "late"

    topology = Topology("timers")
    topology.bolt("report", Reports, topology.spout("words", ["a"]).fields())
    with pytest.raises(
        TopologyCrashed, match=r"on_timer of report\[0\] returned 'late', which nothing takes: emit it"
    ):
        await run_to_end(topology)


async def test_K7_an_epoch_does_not_wait_for_a_timer_that_is_far_away() -> None:
    """Its own time is up before."""

    class Reminder(KeyedBolt[str, str, None]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            self.total += 1
            self.set_timer(self.now + 600)

        def on_timer(self, at: float, out: Collector[None]) -> None:
            pass

    async def slow() -> AsyncIterator[str]:
        for each in "abc":
            yield each
            await asyncio.sleep(5)

    topology = Topology("timers")
    topology.bolt("remind", Reminder, topology.spout("words", slow).fields())
    store = MemoryStore()
    await run(topology, store)
    assert store.load().epoch == 3


class Total(KeyedBolt[str, str, str]):
    """Counts, and passes on."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.total += 1
        out.emit(tup.value)


class Sum(Bolt[str, str]):
    """Says how many there were when all have come."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.ack(tup)

    def finish(self, out: Collector[str]) -> None:
        out.emit("sum")


def summing(fails: int) -> Topology:
    """A sum that fails so many times after it was counted."""
    left = [fails]

    def fail(value: str) -> None:
        if left[0]:
            left[0] -= 1
            raise ValueError("after it was counted")

    topology = Topology("summing", epoch_messages=2, max_attempts=3)
    sums = topology.bolt("sum", Sum, topology.spout("words", list("abcd")).shuffle())
    topology.bolt("fail", fail, topology.bolt("count", Total, sums.fields()).shuffle())
    return topology


async def test_X7_what_finish_has_emitted_in_a_spoilt_attempt_is_asked_for_again() -> None:
    """It belongs to no message that could be emitted again."""
    store = MemoryStore()
    await run(summing(1), store)
    assert kept(store) == {"sum": 1}


async def test_X7_what_fails_for_ever_and_belongs_to_no_message_crashes_the_run() -> None:
    """There is nobody to blame, and nothing is dropped without a word."""
    with pytest.raises(TopologyCrashed) as crash:
        await run(summing(99), MemoryStore())
    assert isinstance(crash.value.__cause__, EpochFailed)


async def test_X6_an_input_that_emits_without_an_anchor_and_fails_counts_once() -> None:
    """What came of it has reached state, though under another root."""
    failed: list[str] = []

    class Unanchored(Bolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            out.emit(tup.value)
            if tup.value in failed:
                out.ack(tup)
            else:
                failed.append(tup.value)
                out.fail(tup, "once")

    topology = Topology("unanchored", replay_delay=0.01)
    words = topology.bolt("unanchored", Unanchored, topology.spout("words", list("xy")).shuffle())
    topology.bolt("count", Total, words.fields())
    store = MemoryStore()
    await run(topology, store)
    assert kept(store) == {"x": 1, "y": 1}


async def test_K1_there_is_no_key_between_two_calls() -> None:
    """A ``tick`` has none, and cannot change the state of whoever came last."""

    class Ticking(KeyedBolt[str, str, None]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            self.total += 1

        def finish(self, out: Collector[None]) -> None:
            self.total += 100

    topology = Topology("ticking")
    topology.bolt("count", Ticking, topology.spout("words", list("ab")).fields())
    with pytest.raises(TopologyCrashed) as crash:
        await run(topology, MemoryStore())
    assert "has a key, and state, in execute and on_timer alone" in str(crash.value.__cause__)


class CountAny(KeyedBolt[Any, Any, None]):
    """Counts, by whatever key."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
        self.total += 1


class CountLater(KeyedBolt[Any, Any, None]):
    """Counts, and may be called beside itself."""

    total = Value(int, 0)

    async def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
        self.total += 1


def count_in_cell(value: Any, total: Cell[int]) -> None:
    total.value += 1


class Basket(msgspec.Struct):
    shop: str
    goods: list[str]


BASKET = Basket("corner", ["milk"])
BY_FIELD = (
    "the field 'goods' of a value from 'baskets', ['milk'], is of type list, by which no state can be kept"
)
WHOLE = f"the key of a value from 'baskets', {BASKET}, is of type Basket, by which no state can be kept"


@pytest.mark.parametrize(
    ("fields", "words"),
    [((), WHOLE), (("goods",), BY_FIELD), (("shop", "goods"), BY_FIELD)],
    ids=["whole", "one", "two"],
)
@pytest.mark.parametrize("hooks", [(), (TaskHook,)], ids=["plain", "hooked"])
@pytest.mark.parametrize(
    ("bolt", "options"),
    [
        (CountAny, {}),
        (CountLater, {}),
        (CountLater, {"concurrency": 4}),
        (count_in_cell, {"state": Value(int, 0)}),
    ],
    ids=["class", "async", "concurrent", "function"],
)
async def test_K1_a_key_that_cannot_be_looked_up_fails_its_message_in_a_sentence(
    bolt: Any, options: dict[str, Any], hooks: Sequence[type[TaskHook]], fields: tuple[str, ...], words: str
) -> None:
    """It names the bolt, the field, its type and the way out; the run goes on."""

    def baskets() -> Iterator[Basket]:
        yield BASKET

    topology = Topology("baskets", max_attempts=1)
    topology.bolt("count", bolt, topology.spout("baskets", baskets).fields(*fields), **options)
    async with topology.run(hooks=hooks) as running:
        await running.finished()
    (letter,) = running.dead_letters
    error = letter.failure.exception
    assert type(error) is TypeError
    assert str(error).startswith(f"bolt 'count': {words} (unhashable type: ")
    assert str(error).endswith("; group by a function of the value that makes a tuple or a text of it")


class Unlucky(str):
    __slots__ = ()

    def __hash__(self) -> int:
        raise RuntimeError("no luck")


async def test_K1_a_key_whose_hash_raises_fails_its_message_in_a_sentence() -> None:
    """Whatever it raises."""
    topology = Topology("unlucky", max_attempts=1)
    topology.bolt("count", CountAny, topology.spout("words", [Unlucky("a")]).fields())
    (letter,) = (await run_to_end(topology)).dead_letters
    assert str(letter.failure.exception) == (
        "bolt 'count': the key of a value from 'words', 'a', is of type Unlucky, by which no state can be kept "
        "(RuntimeError('no luck')); group by a function of the value that makes a tuple or a text of it"
    )


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    def __repr__(self) -> str:
        return "Mute()"


class Untold(str):
    __slots__ = ()

    def __hash__(self) -> int:
        raise TypeError(Mute())


@pytest.mark.parametrize("by", [(), (len,)], ids=["state", "nothing"])
async def test_K1_a_hash_that_raises_what_cannot_be_told_costs_its_message_alone(by: Sequence[Any]) -> None:
    """The reason is looked for before the input is failed, and must not keep it from that (law N1)."""
    topology = Topology("untold", max_attempts=1)
    topology.bolt("count", CountAny, topology.spout("words", [Untold("a"), "b"]).fields(*by))
    running = await run_to_end(topology)
    components = running.statistics().components
    assert (components["words"].acked, len(running.dead_letters)) == ((2, 0) if by else (1, 1))
    assert components["count"].restarts == 0


async def test_K1_another_error_of_the_users_keeps_its_words() -> None:
    """Also one that reads alike, where the key is in order or was not read at all."""

    class Wrong(KeyedBolt[str, str, None]):
        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            raise TypeError("unhashable type: 'mine'")

    topology = Topology("wrong", max_attempts=1)
    topology.bolt("count", Wrong, topology.spout("words", ["a"]).fields())
    (letter,) = (await run_to_end(topology)).dead_letters
    assert str(letter.failure.exception) == "unhashable type: 'mine'"


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_K7_time_is_that_of_the_epoch_however_many_calls_overlap(concurrency: int) -> None:
    """Also for the first call."""
    seen: list[float] = []

    class Now(KeyedBolt[str, str, None]):
        total = Value(int, 0)

        async def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            seen.append(self.now)
            self.total += 1

    topology = Topology("now")
    words = topology.spout("words")
    topology.bolt("now", Now, words.fields(), concurrency=concurrency)
    async with topology.run() as running:
        for _ in range(3):
            await asyncio.sleep(10)
            await (await running.emit(words, "a"))
    assert seen == [10, 20, 30]


async def test_K7_a_timer_for_a_time_that_is_past_is_due_in_the_next_epoch() -> None:
    """At most ten times a second, so that the sources have their turn."""
    fired: list[float] = []

    class Again(KeyedBolt[str, str, None]):
        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            self.set_timer(self.now - 5)

        def on_timer(self, at: float, out: Collector[None]) -> None:
            fired.append(self.now)
            self.set_timer(self.now)

    topology = Topology("again")
    words = topology.spout("words")
    topology.bolt("again", Again, words.fields())
    store = MemoryStore()
    async with topology.run(state=store) as running:
        await (await running.emit(words, "a"))
        await asyncio.sleep(1.05)
    assert fired[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert store.load().epoch == pytest.approx(11, abs=1)


async def test_K7_a_timer_that_is_set_in_an_epoch_ends_it_when_it_is_due() -> None:
    """However long epochs are."""
    fired: list[float] = []

    class Soon(KeyedBolt[str, str, None]):
        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            self.set_timer(self.now + 3)

        def on_timer(self, at: float, out: Collector[None]) -> None:
            fired.append(asyncio.get_running_loop().time())

    async def once() -> AsyncIterator[str]:
        yield "a"
        await asyncio.sleep(50)

    topology = Topology("soon", epoch_seconds=1000.0)
    topology.bolt("soon", Soon, topology.spout("words", once).fields())
    await run(topology, MemoryStore())
    assert fired == [3.0]


class Rarely(Spout[str]):
    """Gives a word at once and another one after 2,000 seconds; it is asked for more meanwhile."""

    def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
        self.left = [(0.0, "a"), (2000.0, "b")]

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        if not self.left:
            raise EndOfStream
        at, word = self.left[0]
        if asyncio.get_running_loop().time() >= at:
            out.emit(word, message_id=self.left.pop(0))


async def test_X6_a_tick_that_comes_without_messages_does_not_hold_up_the_source() -> None:
    """An epoch that has nothing to be committed goes on."""
    topology, seen = ticking(fails=0)
    async with topology.run() as running:
        await running.finished()
    assert [each for each in seen if each != "tick"] == ["a", "b"]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X7_ticks_that_fail_now_and_then_neither_stop_nor_crash_the_run() -> None:
    """There is nothing to be repeated, and they do not fail in a row."""
    topology, seen = ticking(fails=2)
    async with topology.run(max_attempts=3) as running:
        await running.finished()
    assert [each for each in seen if each != "tick"] == ["a", "b"]


def ticking(fails: int) -> tuple[Topology, list[str]]:
    """Two words with half an hour between them, and a bolt that ticks every five minutes; of its ticks all but each
    ``fails``-th fail below."""

    class Ticking(KeyedBolt[str, str, str]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.total += 1
            out.emit(tup.value)

        def tick(self, out: Collector[str]) -> None:
            out.emit("tick")

    seen: list[str] = []

    def see(value: str) -> None:
        seen.append(value)
        if value == "tick" and fails and seen.count("tick") % fails:
            raise ValueError("now and then")

    topology = Topology("ticking")
    ticks = topology.bolt("tick", Ticking, topology.spout("words", Rarely).fields(), tick=300.0)
    topology.bolt("see", see, ticks.shuffle())
    return topology, seen


async def test_K7_an_epoch_that_a_timer_has_ended_leaves_nothing_behind() -> None:
    """Its own time is that of no other one."""

    class Soon(KeyedBolt[str, str, None]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            self.total += 1
            self.set_timer(self.now + 3)

        def on_timer(self, at: float, out: Collector[None]) -> None:
            pass

    topology = Topology("soon", epoch_seconds=1000.0)
    topology.bolt("soon", Soon, topology.spout("words", Rarely).fields())
    async with topology.run() as running:
        await running.finished()
    assert running.statistics().components["words"].acked == 2
