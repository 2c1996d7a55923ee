"""Sources over brokers that give a message again until it is acked (law X8)."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Any, ClassVar, cast

import pytest

from stormlet import (
    Collector,
    DeadLetter,
    EndOfStream,
    Failure,
    InvalidTopology,
    KeyedBolt,
    Reject,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.state.commits import Commit, StateId
from stormlet.core.state.redeliveries import IDS, KEPT, NAME
from stormlet.core.state.states import State
from stormlet.core.state.value_table import ValueTable
from stormlet.model.state.keyed import states_of
from stormlet.state.memory import MemoryStore

pytestmark = pytest.mark.simulated_time


class Broker:
    """A queue that gives again what was not acked."""

    def __init__(self, words: str) -> None:
        self.ready = deque(enumerate(words))
        self.acked: list[int] = []
        self.failed: list[int] = []
        self.is_open = True


class Consumer(Spout[str]):
    """Gives what a broker has; with its instance goes what it could ack."""

    redelivers = True

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.held: dict[int, str] = {}

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        if self.broker.ready:
            number, word = self.broker.ready.popleft()
            self.held[number] = word
            out.emit(word, message_id=number)
        elif not self.broker.is_open:
            raise EndOfStream

    def ack(self, message_id: object) -> None:
        del self.held[cast("int", message_id)]
        self.broker.acked.append(cast("int", message_id))

    def fail(self, message_id: object, failure: Failure) -> None:
        del self.held[cast("int", message_id)]
        self.broker.failed.append(cast("int", message_id))


class Count(KeyedBolt[str, str, str]):
    """Counts words."""

    total = Value(int, 0)
    executed: ClassVar[list[str]] = []

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.executed.append(tup.value)
        self.total += 1
        out.emit(tup.value)


@pytest.fixture(autouse=True)
def nothing_executed() -> None:
    Count.executed.clear()


def counting(
    broker: Broker, consumer: type[Consumer] = Consumer, tasks: int = 1, **options: Any
) -> tuple[Topology, Stream[str]]:
    """A topology that counts words, and their stream."""
    topology = Topology("counting", **options)
    words = topology.spout("words", partial(consumer, broker), parallelism=tasks)
    topology.bolt("count", Count, words.fields())
    return topology, words


async def whole(topology: Topology, broker: Broker, store: MemoryStore, **options: Any) -> Running:
    """Run until the broker has nothing more."""
    async with topology.run(state=store, **options) as running:
        broker.is_open = False
        await running.finished()
    return running


def remembered(store: MemoryStore) -> dict[Any, bool]:
    """The ids that are durable and not acked."""
    state = State(StateId("words", NAME), IDS)
    state.load(store.load().states.get(state.id, ()))
    return dict(state.tables[0].committed_items())


def counted(store: MemoryStore) -> dict[str, int]:
    """The counts in the store."""
    state = State(StateId("count", "total"), states_of(Count)["total"])
    state.load(store.load().states[state.id])
    return dict(state.tables[0].committed_items())


class Cut(Consumer):
    """Loses its connection before it can ack anything."""

    def ack(self, message_id: object) -> None:
        raise ConnectionError("the connection is lost")


@pytest.mark.simulated_time(allow_leaks=True)
async def test_X8_what_is_durable_and_was_not_acked_is_acked_when_it_comes_again() -> None:
    """It is not executed again, in the next run either."""
    store, broker = MemoryStore("line"), Broker("aab")
    with pytest.raises(TopologyCrashed):
        await whole(counting(broker, Cut, max_restarts=0)[0], broker, store)
    assert sorted(remembered(store)) == [0, 1, 2]
    again = Broker("aabc")
    running = await whole(counting(again)[0], again, store)
    assert (counted(store), sorted(again.acked)) == ({"a": 2, "b": 1, "c": 1}, [0, 1, 2, 3])
    assert Count.executed == ["a", "a", "b", "c"]
    assert running.statistics().components["words"].acked == 4


async def test_X8_what_was_acked_is_forgotten() -> None:
    """By the commit after that, also at the end of a run."""
    store, broker = MemoryStore("line"), Broker("abcdef")
    await whole(counting(broker, epoch_messages=2)[0], broker, store)
    assert (sorted(broker.acked), remembered(store)) == ([0, 1, 2, 3, 4, 5], {})


async def test_X8_what_comes_again_while_it_is_under_way_is_the_same_message() -> None:
    """It is executed once, and acked once."""
    store, broker = MemoryStore("line"), Broker("ab")
    broker.ready.extend([*broker.ready, *broker.ready])
    await whole(counting(broker)[0], broker, store)
    assert (Count.executed, broker.acked, counted(store)) == (["a", "b"], [0, 1], {"a": 1, "b": 1})


class OneEach(Consumer):
    """Gives all messages, as does each other task."""

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        if self.held:
            raise EndOfStream
        for number, word in self.broker.ready:
            self.held[number] = word
            out.emit(word, message_id=number)


async def test_X8_what_comes_again_from_another_task_is_acked_by_both() -> None:
    """Each has a delivery of its own; it is executed once."""
    store, broker = MemoryStore("line"), Broker("ab")
    await whole(counting(broker, OneEach, tasks=3)[0], broker, store)
    assert sorted(Count.executed) == ["a", "b"]
    assert sorted(broker.acked) == [0, 0, 0, 1, 1, 1]


class Dying(Consumer):
    """Dies once, with the connection, when it has given all that there is; then the broker gives it again, later."""

    deaths: ClassVar[int] = 0

    async def next_tuple(self, out: SpoutCollector[str]) -> None:  # type: ignore[override]
        if self.broker.ready or not self.held or Dying.deaths:
            super().next_tuple(out)
            return
        Dying.deaths += 1
        self.broker.is_open = True
        asyncio.get_running_loop().call_later(60.0, self.give_again, dict(self.held))
        raise ConnectionError("the connection is lost")

    def give_again(self, held: dict[int, str]) -> None:
        self.broker.ready.extend(held.items())
        self.broker.is_open = False


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X8_what_an_instance_has_given_that_died_is_acked_when_it_comes_again() -> None:
    """Another instance could not ack it before."""
    Dying.deaths = 0
    store, broker = MemoryStore("line"), Broker("ab")
    async with counting(broker, Dying)[0].run(state=store) as running:
        broker.is_open = False
        await asyncio.sleep(30)
        assert (counted(store), broker.acked, sorted(remembered(store))) == ({"a": 1, "b": 1}, [], [0, 1])
        await running.finished()
    assert (Count.executed, sorted(broker.acked), remembered(store)) == (["a", "b"], [0, 1], {})
    assert running.statistics().components["words"].restarts == 1


async def test_X8_a_message_that_is_given_up_is_durable_too() -> None:
    """Its spout is told, and it is a dead letter once."""

    def reject(word: str) -> None:
        if word == "b":
            raise Reject("never")

    letters: list[DeadLetter] = []
    store, broker = MemoryStore("line"), Broker("abc")
    broker.ready.append((1, "b"))
    topology, words = counting(broker)
    topology.bolt("reject", reject, words.shuffle())
    await whole(topology, broker, store, dead_letters=letters.append)
    assert ([each.value for each in letters], broker.failed, sorted(broker.acked)) == (["b"], [1], [0, 2])


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X8_a_spoilt_attempt_leaves_what_is_under_way_under_way() -> None:
    """It is executed again by the engine, and not because it comes again."""
    store, broker = MemoryStore("line"), Broker("abc")
    failed: list[str] = []

    def fail_once(word: str) -> None:
        if word == "b" and not failed:
            failed.append(word)
            broker.ready.extend(enumerate("abc"))
            raise ValueError("once")

    topology, words = counting(broker)
    topology.bolt("after", fail_once, words.shuffle())
    await whole(topology, broker, store)
    assert (counted(store), sorted(broker.acked)) == ({"a": 1, "b": 1, "c": 1}, [0, 1, 2])


class Asked(Consumer):
    """Acks in its own time."""

    async def ack(self, message_id: object) -> None:  # type: ignore[override]
        await asyncio.sleep(1)
        super().ack(message_id)


async def test_X8_an_ack_counts_when_it_has_returned() -> None:
    """What comes again meanwhile is acked again."""
    store, broker = MemoryStore("line"), Broker("ab")
    await whole(counting(broker, Asked)[0], broker, store)
    assert (sorted(broker.acked), remembered(store)) == ([0, 1], {})


async def test_X8_an_id_that_does_not_come_again_is_dropped_after_a_day() -> None:
    """The broker has got its ack, and the process has not heard of that."""
    loop, store, broker = asyncio.get_running_loop(), MemoryStore("line"), Broker("a")
    state = State(StateId("words", NAME), IDS)
    state.tell(loop.time())
    cast("ValueTable", state.tables[0]).put(0, True)
    store.commit(Commit(1, loop.time(), {}, state.seal()))
    await asyncio.sleep(KEPT)
    await whole(counting(broker)[0], broker, store)
    assert Count.executed == ["a"]


class Unfit(Consumer):
    """Says how it goes on in two ways."""

    resumable = True


class Silent(Spout[str]):
    """Never acks."""

    redelivers = True

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        raise EndOfStream


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (partial(Unfit, Broker("")), "says resumable and redelivers, and goes on in one way"),
        (Silent, "redelivers, and has no ack"),
    ],
)
def test_X8_a_source_that_redelivers_acks_and_has_no_position(source: Any, says: str) -> None:
    """Otherwise nothing would ever be forgotten, or be asked for twice."""
    topology = Topology("counting")
    topology.bolt("count", Count, topology.spout("words", source).fields())
    with pytest.raises(InvalidTopology, match=says):
        topology.run(state=MemoryStore())


@pytest.mark.simulated_time(allow_leaks=True)
@pytest.mark.parametrize(
    ("message_id", "says"),
    [(None, "emits without message_id="), (object(), "which cannot be kept"), ([], "which cannot be kept")],
)
async def test_X8_a_message_that_redelivers_has_an_id_that_can_be_kept(message_id: object, says: str) -> None:
    """By which it is known in the next run."""

    class Odd(Consumer):
        def next_tuple(self, out: SpoutCollector[str]) -> None:
            out.emit("a", message_id=message_id)

    broker = Broker("")
    with pytest.raises(TopologyCrashed, match=says):
        await whole(counting(broker, Odd, max_restarts=0)[0], broker, MemoryStore())


@pytest.mark.simulated_time(allow_leaks=True)
async def test_X8_a_message_that_could_not_be_emitted_is_not_known() -> None:
    """When it comes again, it is executed."""
    store, broker = MemoryStore("line"), Broker("abc")
    keys: list[str] = []

    def key(word: str) -> str:
        keys.append(word)
        if keys == ["a", "b"]:
            broker.ready.extend(enumerate("abc"))
            raise ValueError("once")
        return word

    topology = Topology("counting")
    topology.bolt("count", Count, topology.spout("words", partial(Consumer, broker)).fields(key))
    await whole(topology, broker, store)
    assert counted(store) == {"a": 1, "b": 1, "c": 1}


async def test_X8_messages_of_the_host_come_once() -> None:
    """They have no id, and are nobody's to give again."""
    store, broker = MemoryStore("line"), Broker("a")
    topology, words = counting(broker)
    async with topology.run(state=store) as running:
        await (await running.emit(words, "b"))
    assert counted(store) == {"a": 1, "b": 1}
