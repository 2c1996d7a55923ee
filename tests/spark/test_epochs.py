"""Epochs from a source through a topology into sinks, on simulated time and without Spark."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from random import Random
from typing import Any
from unittest.mock import ANY

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    DeadLetter,
    InvalidTopology,
    NotExactlyOnce,
    Reject,
    StartFailed,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.errors import SparkFailed
from stormlet.spark.frames import Origin
from tests.helpers import now, run_to_end
from tests.spark.epoch_kit import Sink, Source, Store, slowly_written

pytestmark = pytest.mark.simulated_time


def written(
    store: Store, logic: Any, total: int = 25, size: int = 10, parallelism: int = 1, **options: Any
) -> Topology:
    """Numbers, one bolt, and a sink."""
    topology = Topology("epochs", **options)
    numbers = topology.spout("numbers", Source(store, total, size), outputs=int)
    made = topology.bolt("logic", logic, numbers.shuffle(), parallelism=2)
    topology.bolt("write", Sink(store), made.shuffle(), parallelism=parallelism)
    return topology


def double(value: int) -> int:
    return 2 * value


def double_of_few(value: int) -> int | None:
    return 2 * value if value < 10 else None


def doubled(total: int = 25) -> list[int]:
    return [2 * value for value in range(total)]


async def test_epochs_are_written_one_by_one() -> None:
    """Each as a whole, the last one shorter, and the source knows of each when it stands."""
    store = Store()
    await run_to_end(written(store, double, parallelism=3))
    assert store.rows() == doubled()
    assert [len(store.written["out", epoch]) for epoch in range(3)] == [10, 10, 5]
    assert store.events == [(what, epoch) for epoch in range(3) for what in ("written", "recorded")]


async def test_nothing_is_left_to_do() -> None:
    """Another run writes nothing and ends at once."""
    store = Store()
    await run_to_end(written(store, double))
    store.events.clear()
    await run_to_end(written(store, double))
    assert store.events == []


class FailsOnce:
    """Fails each of these numbers when it comes for the first time."""

    def __init__(self, *numbers: int) -> None:
        self.failing = set(numbers)
        self.seen: list[int] = []

    def __call__(self, value: int) -> Iterator[int]:
        self.seen.append(value)
        yield 2 * value  # which is in the sink before the failure
        if value in self.failing:
            self.failing.remove(value)
            raise OSError("flaky")


async def test_a_failed_epoch_is_replayed_as_a_whole() -> None:
    """What the first attempt has brought is dropped, and the epochs before and after are not touched."""
    store, flaky = Store(), FailsOnce(13, 17)
    await run_to_end(written(store, flaky))
    assert store.rows() == doubled()
    assert Counter(flaky.seen) == {value: 1 + (10 <= value < 20) for value in range(25)}


async def test_the_replay_waits() -> None:
    """As a replay of a single message would: 0.1 s and doubled, with jitter."""
    store = Store()
    await run_to_end(written(store, FailsOnce(3), total=10))
    assert 0.1 <= now() <= 0.2


async def test_rejected_rows_are_dead_letters() -> None:
    """Of a row that is given up nothing is in the sink, and its letter comes after its epoch was written, before
    the source knows of it."""
    store, letters = Store(), list[DeadLetter]()

    def reject(value: int) -> Iterator[int]:
        yield 2 * value
        if value == 13:
            raise Reject("unlucky")

    def bury(letter: DeadLetter) -> None:
        letters.append(letter)
        store.events.append("letter")

    await run_to_end(written(store, reject), dead_letters=bury)
    assert store.rows() == [value for value in doubled() if value != 26]
    (letter,) = letters
    assert (letter.value, letter.origin, letter.message_id) == (13, Origin(0, 13, 1), Origin(0, 13, 1))
    assert (letter.attempts, letter.failure.reason) == (1, "unlucky")
    assert store.events[2:5] == [("written", 1), "letter", ("recorded", 1)]


async def test_rows_that_do_not_fit_are_rejected() -> None:
    """The sink's columns are a reason as any other."""
    store, letters = Store(), list[DeadLetter]()
    await run_to_end(written(store, lambda value: value - 3, total=10), dead_letters=letters.append)
    assert sorted(letter.value for letter in letters) == [0, 1, 2]
    assert letters[0].failure.reason == "negative"
    assert store.rows() == list(range(7))


async def test_timeouts_count_as_attempts() -> None:
    """A row that never ends is given up when it has timed out often enough."""
    store, letters = Store(), list[DeadLetter]()

    async def slow(value: int) -> AsyncIterator[int]:
        yield value
        if value == 9:  # with nothing behind it that would have to wait, too
            await asyncio.sleep(20)

    topology = written(store, slow, total=10, message_timeout=5.0, max_attempts=2)
    await run_to_end(topology, dead_letters=letters.append)
    assert store.rows() == list(range(9))
    (letter,) = letters
    assert (letter.value, letter.attempts) == (9, 2)


async def test_what_reaches_no_task_is_emitted_again() -> None:
    """Where ackers have no room (law L13) the attempt goes on when they have."""
    store, seen = Store(), Counter[int]()

    async def slow(value: int) -> int:
        seen[value] += 1
        await asyncio.sleep(0.01)
        return 2 * value

    running = await run_to_end(written(store, slow, total=100, size=100, acker_high_water=2))
    assert running.statistics().components["numbers"].overflowed > 0
    assert store.rows() == doubled(100)
    assert set(seen.values()) == {1}


async def test_the_last_row_may_reach_no_task() -> None:
    """The pause, in which bolts are flushed, begins when all rows of the attempt are on their way."""
    store, seen = Store(), Counter[int]()

    def count(value: int) -> int:
        seen[value] += 1
        return value

    topology = Topology("last", acker_high_water=1)
    numbers = topology.spout("numbers", Source(store, 4, 4), outputs=int)
    counted = topology.bolt("count", count, numbers.shuffle())
    topology.bolt("write", Sink(store), topology.bolt("pairs", Pairs, counted.shuffle()).shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["numbers"].overflowed > 0
    assert store.rows() == [1, 5]
    assert set(seen.values()) == {1}


async def test_bolts_know_the_attempt() -> None:
    """It is counted by epoch, from 1."""
    seen: list[tuple[int, int]] = []

    class Look(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            seen.append((tup.value, tup.attempt))
            if (tup.value, tup.attempt) == (1, 1):
                raise OSError("flaky")

    await run_to_end(written(Store(), Look, total=4, size=2))
    assert sorted(seen) == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (3, 1)]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_a_bolt_that_is_restarted() -> None:
    """What it held is replayed with its epoch, and the sink has each row once."""

    class Dies(Bolt[int, int]):
        lives = 0

        def __init__(self) -> None:
            Dies.lives += 1
            self.held: list[Tuple[int]] = []

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.emit(2 * tup.value, anchors=tup)
            self.held.append(tup)

        def flush(self, out: Collector[int]) -> None:
            if Dies.lives < 4:
                raise OSError("dead")
            while self.held:
                out.ack(self.held.pop())

    store = Store()
    await run_to_end(written(store, Dies))
    assert Dies.lives == 4
    assert store.rows() == doubled()


class Pairs(Bolt[int, int]):
    """Joins each even number with the odd one after it: the sum, anchored to both."""

    def __init__(self) -> None:
        self.waiting: dict[int, Tuple[int]] = {}

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        partner = self.waiting.pop(tup.value // 2, None)
        if partner is None:
            self.waiting[tup.value // 2] = tup
            return
        out.emit(tup.value + partner.value, anchors=(tup, partner))
        out.ack(tup)
        out.ack(partner)

    def flush(self, out: Collector[int]) -> None:
        while self.waiting:
            out.fail(self.waiting.popitem()[1], "its partner has not come")


def flaky(random: Random) -> Callable[[int], Iterator[int]]:
    def execute(value: int) -> Iterator[int]:
        yield value
        if random.random() < 0.02:
            raise OSError("flaky")
        if value % 20 >= 18:  # both of a pair
            raise Reject("the last ones")

    return execute


@pytest.mark.parametrize("seed", range(10))
async def test_joins_and_fan_out(seed: int) -> None:
    """Failures in any branch before and after a join leave each sum, and each copy, in its sink once."""
    store = Store()
    topology = Topology("joined", max_attempts=50)
    numbers = topology.spout("numbers", Source(store, 100, 20), outputs=int)
    checked = topology.bolt("check", flaky(Random(seed)), numbers.shuffle(), parallelism=2)
    paired = topology.bolt("pair", Pairs, checked.fields(lambda value: value // 2), parallelism=2)
    again = topology.bolt("again", flaky(Random(seed + 100)), paired.shuffle())
    topology.bolt("sums", Sink(store, "sums"), again.shuffle(), parallelism=2)
    topology.bolt("copies", Sink(store, "copies"), checked.shuffle(), parallelism=3)
    await run_to_end(topology, seed=seed)
    kept = [value for value in range(100) if value % 20 < 18]
    assert store.rows("copies") == kept
    assert store.rows("sums") == [2 * value + 1 for value in kept if value % 2 == 0]


async def test_batches_of_an_epoch() -> None:
    """What a bolt holds of an epoch is flushed before the commit, and none of it reaches the next one."""

    class Sums(BatchBolt[int, int]):
        size = 1000
        within = 1e9

        def execute_batch(self, tups: Any, out: Collector[int]) -> None:
            out.emit(sum(tup.value for tup in tups))

    store = Store()
    await run_to_end(written(store, Sums))
    assert [sum(store.written["out", epoch]) for epoch in range(3)] == [45, 145, 110]


async def test_an_epoch_without_output_is_written_too() -> None:
    """So that nothing is left there of what a process that was killed has written."""
    store = Store()
    store.written["out", 1] = [99]
    await run_to_end(written(store, double_of_few))
    assert store.written == {("out", 0): ANY, ("out", 1): [], ("out", 2): []}
    assert store.rows() == doubled(10)


async def test_a_failed_write_is_tried_again() -> None:
    """Nothing is replayed for it."""
    store, flaky = Store(), FailsOnce()
    store.failing = 4
    await run_to_end(written(store, flaky))
    assert store.rows() == doubled()
    assert len(flaky.seen) == 25
    assert now() == 0.5 + 1 + 2 + 4


async def test_a_write_that_keeps_failing_crashes() -> None:
    """With Spark's error; the source does not know of the epoch, and another run writes it."""
    store = Store()
    store.failing = 5
    with pytest.raises(
        TopologyCrashed, match=r"next_tuple of numbers\[0\] raised .*the disk is full"
    ) as crash:
        await run_to_end(written(store, double))
    assert isinstance(crash.value.__cause__, SparkFailed)
    assert store.events == []
    await run_to_end(written(store, double))
    assert store.rows() == doubled()


async def test_other_rows_each_time() -> None:
    """An epoch of which each attempt fails for other rows would go on for ever: it crashes, and says why."""
    failing = iter(range(1000))

    def unlucky(value: int) -> int:
        if value == 0:
            unlucky.__dict__["next"] = next(failing) % 10
        if value == unlucky.__dict__["next"]:
            raise OSError("flaky")
        return value

    topology = written(Store(), unlucky, total=10, max_attempts=4, replay_delay_max=0.1)
    with pytest.raises(
        TopologyCrashed,
        match=r"epoch 0 has failed 16 times in a row, each time for other rows, .* 1 of 10; have",
    ):
        await run_to_end(topology)


# What would not be exact.


class Ends(BasicBolt[int, int]):
    """Emits once more at its end, and in its ticks if it has any."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value)

    def finish(self, out: Collector[int]) -> None:
        out.emit(1000)


class Loses(Bolt[int, int]):
    """Emits without anchors."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value)
        out.ack(tup)


@pytest.mark.parametrize("logic", [Ends, Loses])
async def test_rows_of_no_epoch_crash(logic: Any) -> None:
    """What finish emits, and what is not anchored: it would be lost or doubled by a replay or a kill."""
    store = Store()
    with pytest.raises(
        TopologyCrashed,
        match=r"of write\[0\] raised NotExactlyOnce.*bolt 'write' writes exactly once and has got",
    ) as crash:
        await run_to_end(written(store, logic))
    assert "comes from no row of the source: anchor what is emitted" in str(crash.value.__cause__)
    assert isinstance(crash.value.__cause__, NotExactlyOnce)
    assert store.events == ([] if logic is Loses else store.events)


async def test_what_the_host_emits_crashes() -> None:
    """It belongs to no epoch, and no other run would emit it again."""
    store = Store()
    topology = Topology("host")
    numbers = topology.spout("numbers", Source(store, 5, 5), outputs=int)
    topology.bolt("write", Sink(store), numbers.shuffle())

    async def emit() -> None:
        async with topology.run(active=False) as running:
            await running.emit(numbers, 5)
            await running.finished()

    with pytest.raises(TopologyCrashed, match=r"which comes from no row of the source"):
        await emit()
    assert store.events == []


async def test_two_sinks_need_two_places() -> None:
    """They would replace each other's epochs."""
    store = Store()
    topology = Topology("sinks")
    numbers = topology.spout("numbers", Source(store, 5, 5), outputs=int)
    topology.bolt("one", Sink(store), numbers.shuffle())
    topology.bolt("two", Sink(store), numbers.shuffle())
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology)
    assert isinstance(caught.value.__cause__, InvalidTopology)
    assert "bolts 'one' and 'two' both write exactly once to out" in str(caught.value.__cause__)


async def test_without_ackers_it_refuses_to_start() -> None:
    """Epochs live by acks (law L9)."""
    with pytest.raises(InvalidTopology, match="lives by acks and cannot run with ackers=0"):
        await run_to_end(written(Store(), double), ackers=0)


# Stops.


async def stop_after(seconds: float, topology: Topology) -> None:
    async with topology.run() as running:
        await asyncio.sleep(seconds)
        running.stop()


async def slowly(value: int) -> int:
    await asyncio.sleep(0.1)
    return 2 * value


async def test_a_whole_epoch_is_committed_at_the_end() -> None:
    """All of it was emitted when the stop came, and it is settled in the drain."""
    store = Store()
    await stop_after(0.3, written(store, slowly))
    assert store.rows() == doubled(10)
    assert store.next_epoch == 1


async def test_an_epoch_that_fails_in_the_drain_is_left(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of it is written, one line says so, and the next run does it."""
    store = Store()

    async def fails_late(value: int) -> int:
        if value == 9:
            await asyncio.sleep(1)
            raise OSError("flaky")
        return 2 * value

    await stop_after(0.5, written(store, fails_late))
    assert store.events == []
    assert "epochs: numbers: the run ends within epoch 0, of which nothing was written" in caplog.text
    await run_to_end(written(store, double))
    assert store.rows() == doubled()


async def test_leftovers_of_the_deadline_are_not_done() -> None:
    """A drain that takes too long fails what is open, and so the epoch is not committed."""
    store = Store()
    await stop_after(0.3, written(store, slowly, drain_timeout=0.1))
    assert store.events == []


async def test_a_pause_of_the_topology() -> None:
    """Deactivated within a back-off or a commit and activated again, it goes on where it was."""
    store = Store()
    store.failing = 2
    async with written(store, FailsOnce(3, 14)).run() as running:
        for _ in range(40):
            await asyncio.sleep(0.05)
            running.deactivate()
            await asyncio.sleep(0.05)
            running.activate()
        await running.finished()
    assert store.rows() == doubled()
    assert [event for event in store.events if event[0] == "recorded"] == [
        ("recorded", epoch) for epoch in range(3)
    ]


async def test_a_stop_within_a_commit(caplog: pytest.LogCaptureFixture) -> None:
    """It goes on to its end, then the epoch is written that has run meanwhile, and nothing is said to be left."""
    store = Store()
    await stop_after(1.0, slowly_written(store, 5.0))
    assert store.events == [("written", 0), ("recorded", 0), ("written", 1), ("recorded", 1)]
    assert "the run ends within" not in caplog.text


async def test_a_commit_that_takes_too_long_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """It is given up after the time that a drain may take, and the next run writes the epoch."""
    store = Store()
    await stop_after(1.0, slowly_written(store, 500.0, drain_timeout=3.0))
    assert now() < 10
    assert store.events == []
    assert "slow: numbers: the epoch was not written within drain_timeout=3 s" in caplog.text


async def test_a_commit_that_fails_at_the_end_crashes() -> None:
    """The block raises what the write has failed with, as the epoch is not where the host expects it."""
    store = Store()
    store.failing = 100
    with pytest.raises(TopologyCrashed, match=r"close of numbers\[0\] raised") as caught:
        await stop_after(0.3, written(store, slowly))
    assert str(caught.value.__cause__) == "the disk is full"
    assert store.next_epoch == 0


async def test_a_commit_that_times_out_by_itself_crashes() -> None:
    """It is not the drain that took too long."""

    async def unanswered(letter: DeadLetter) -> None:
        raise TimeoutError("no answer")

    async def reject(value: int) -> int:
        await asyncio.sleep(0.1)
        if value == 3:
            raise Reject("no")
        return value

    async def host() -> None:
        async with written(Store(), reject).run(dead_letters=unanswered) as running:
            await asyncio.sleep(0.9)
            running.stop()

    with pytest.raises(TopologyCrashed) as caught:
        await host()
    assert str(caught.value.__cause__) == "no answer"


@pytest.mark.parametrize("pause", [0.0, 60.0])
async def test_a_commit_that_fails_unheard_crashes(pause: float) -> None:
    """One that was under way when the topology was deactivated, and has failed before or after it was left."""
    store = Store()
    store.failing = 100

    async def host() -> None:
        async with slowly_written(store, 1.0, drain_timeout=100.0).run() as running:
            await asyncio.sleep(1.0)
            running.deactivate()
            await asyncio.sleep(pause)

    with pytest.raises(TopologyCrashed, match=r"close of numbers\[0\] raised") as caught:
        await host()
    assert str(caught.value.__cause__) == "the disk is full"


@pytest.mark.parametrize("failing", [0, 1])
async def test_a_sink_whose_task_dies_within_a_commit(failing: int) -> None:
    """The commit goes on with the next instance, also where it must try again."""
    store = Store()
    store.failing = failing
    async with slowly_written(store, 5.0).run() as running:
        await asyncio.sleep(1.0)
        running.kill("write")
        await running.finished()
    assert store.rows() == list(range(20))


async def test_a_pause_within_a_commit(caplog: pytest.LogCaptureFixture) -> None:
    """The next epoch is emitted once: that the topology was deactivated meanwhile is no failed attempt."""
    store = Store()
    async with slowly_written(store, 5.0).run() as running:
        await asyncio.sleep(1.0)
        running.deactivate()
        await asyncio.sleep(10.0)
        running.activate()
        await running.finished()
    assert store.rows() == list(range(20))
    assert "has failed for" not in caplog.text
