"""Epochs that a source cuts itself: each is done as a whole, under the source's number (law X7, X8, X9)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    Committer,
    Epoch,
    EpochBolt,
    EpochFailed,
    InvalidTopology,
    KeyedBolt,
    NotExactlyOnce,
    Reject,
    SpoutCollector,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.outcomes import DeadLetter
from stormlet.state.memory import MemoryStore
from tests.epochs.cutting import Notes, Numbers, Source
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time

Written = dict[int, list[int]]


def noting(source: Source, written: Written) -> Callable[[Epoch, Sequence[int]], None]:
    """Note rows by the number of their epoch; the last ones of a number count, as in a directory."""

    def note(epoch: Epoch, rows: Sequence[int]) -> None:
        source.events.append(("written", epoch.number))
        written[epoch.number] = sorted(rows)

    return note


def topology_of(source: Source, written: Written, logic: Any = None, **options: Any) -> Topology:
    """Numbers, one bolt, and a committer."""
    topology = Topology("cut", replay_delay=0.01, **options)
    made = topology.spout("numbers", source, outputs=int)
    if logic is not None:
        made = topology.bolt("logic", logic, made.shuffle(), outputs=int)

    def write() -> Notes:
        return Notes(noting(source, written))

    topology.bolt("write", write, made.shuffle())
    return topology


def parts(total: int, size: int, first: int = 0) -> Written:
    """The numbers of each epoch."""
    return {
        first + place // size: list(range(place, min(place + size, total))) for place in range(0, total, size)
    }


async def test_X8_what_a_source_has_cut_is_one_epoch_whatever_the_others_would_be() -> None:
    """Neither messages nor seconds end it, and without state= it has the source's number."""
    source, written = Source(25, 10), Written()

    async def slow(number: int) -> int:
        await asyncio.sleep(0.5)
        return number

    await run_to_end(topology_of(source, written, slow, epoch_messages=3, epoch_seconds=0.1))
    assert written == parts(25, 10)


async def test_X8_without_state_a_source_hears_when_the_committers_have_had_its_epoch() -> None:
    """It is what makes the epoch durable; one without rows is done as well."""
    source, written = Source(25, 10), Written()
    await run_to_end(topology_of(source, written, lambda number: None if 10 <= number < 20 else number))
    assert source.events == [("written", 0), ("done", 0), ("done", 1), ("written", 2), ("done", 2)]


async def test_X9_an_epoch_of_a_source_is_known_by_its_number_and_line() -> None:
    """A sink that notes them can tell it from one that comes again."""
    seen: list[Epoch] = []
    source = Source(4, 2)
    topology = Topology("cut")

    def write() -> Notes:
        return Notes(lambda epoch, rows: seen.append(epoch))

    topology.bolt("write", write, topology.spout("numbers", source, outputs=int).shuffle())
    await run_to_end(topology)
    assert seen == [Epoch(0, "numbers", by_source=True), Epoch(1, "numbers", by_source=True)]
    assert [seen[1].follows(each) for each in (None, *seen)] == [True, True, False]
    with pytest.raises(
        ValueError, match="as its source is another one or had a state: the sink has rows up to epoch 7"
    ):
        seen[1].follows(Epoch(7, "other"))


async def test_X8_bolts_of_epochs_know_the_number_of_the_source() -> None:
    """As committers do."""
    seen: list[str] = []

    class Last(EpochBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.last = tup.value

        def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
            seen.append(f"{epoch} of {epoch.line}: {self.last}")

    topology = Topology("cut")
    topology.bolt("last", Last, topology.spout("numbers", Source(4, 2), outputs=int).global_())
    await run_to_end(topology)
    assert seen == ["epoch 0 of numbers: 1", "epoch 1 of numbers: 3"]


class FailsOnce:
    """Fails each of these numbers when it comes for the first time, after it has emitted."""

    def __init__(self, *numbers: int) -> None:
        self.failing = set(numbers)
        self.seen = Counter[int]()

    def __call__(self, value: int) -> Iterator[int]:
        self.seen[value] += 1
        yield value
        if value in self.failing:
            self.failing.remove(value)
            raise OSError("flaky")


async def test_X7_an_attempt_at_a_cut_epoch_goes_on_to_its_end_and_is_repeated_as_a_whole() -> None:
    """All that fails is found by one attempt, and the epochs before and after are not touched."""
    source, written, flaky = Source(25, 10), Written(), FailsOnce(13, 17)
    await run_to_end(topology_of(source, written, flaky))
    assert written == parts(25, 10)
    assert flaky.seen == {value: 1 + (10 <= value < 20) for value in range(25)}


async def test_X7_a_failure_before_state_is_replayed_alone_in_a_cut_epoch_too() -> None:
    """Nothing else of it comes again (law X6)."""
    source, written, seen = Source(20, 10), Written(), Counter[int]()

    def unsure(value: int) -> int:
        seen[value] += 1
        if value == 13 and seen[value] == 1:
            raise OSError("flaky")
        return value

    await run_to_end(topology_of(source, written, unsure))
    assert written == parts(20, 10)
    assert seen == {value: 1 + (value == 13) for value in range(20)}


async def test_X7_the_next_attempt_at_a_cut_epoch_waits() -> None:
    """As a replay of a single message would: 0.1 s and doubled, with jitter."""
    source, written = Source(10, 10), Written()
    topology = topology_of(source, written, FailsOnce(3))
    await run_to_end(topology, replay_delay=0.1)
    assert 0.1 <= now() <= 0.2


async def test_X7_what_a_cut_epoch_gives_up_is_left_out_of_it() -> None:
    """Its letter comes before the source hears that the epoch is done."""
    source, written, letters = Source(20, 10), Written(), list[DeadLetter]()

    def reject(value: int) -> Iterator[int]:
        yield value
        if value in (13, 15):
            raise Reject("unlucky")

    async def bury(letter: DeadLetter) -> None:
        await asyncio.sleep(5.0)
        source.events.append("letter")
        letters.append(letter)

    await run_to_end(topology_of(source, written, reject), dead_letters=bury)
    assert written == {0: list(range(10)), 1: [10, 11, 12, 14, 16, 17, 18, 19]}
    assert [letter.value for letter in letters] == [13, 15]
    assert source.events[2:] == [("written", 1), "letter", "letter", ("done", 1)]


async def test_X7_a_cut_epoch_that_fails_for_other_messages_each_time_crashes_in_the_end() -> None:
    """It would go on for ever, and says why."""
    failing = iter(range(1000))
    unlucky = [0]

    def fail(value: int) -> Iterator[int]:
        if value == 0:
            unlucky[0] = next(failing) % 10
        yield value
        if value == unlucky[0]:
            raise OSError("flaky")

    topology = topology_of(Source(10, 10), Written(), fail, max_attempts=4, replay_delay_max=0.1)
    with pytest.raises(
        TopologyCrashed, match=r"epoch 1 has failed 16 times in a row, each time for other"
    ) as crash:
        await run_to_end(topology)
    assert isinstance(crash.value.__cause__, EpochFailed)


async def test_X8_more_messages_than_may_be_pending_are_tried_again_a_few_at_a_time() -> None:
    """The bound holds for the next attempt, too (law S3)."""
    source, written, most = Source(100, 100), Written(), [0]
    flaky = FailsOnce(50)

    async def slow(value: int) -> AsyncIterator[int]:
        await asyncio.sleep(0.01)
        for each in flaky(value):
            yield each

    async with topology_of(source, written, slow, max_spout_pending=8).run() as running:
        while written == {}:
            statistics = running.statistics()
            withheld = 0 if statistics.epoch is None else statistics.epoch.withheld
            most[0] = max(most[0], statistics.components["numbers"].pending - withheld)
            await asyncio.sleep(0.001)
        await running.finished()
    assert written == parts(100, 100)
    assert most[0] <= 8 + 7


async def test_X8_what_reaches_no_task_is_emitted_again() -> None:
    """Where ackers have no room (law L13) the epoch goes on when they have, and nothing is executed twice."""
    source, written, seen = Source(100, 100), Written(), Counter[int]()

    async def slow(value: int) -> int:
        seen[value] += 1
        await asyncio.sleep(0.01)
        return value

    running = await run_to_end(topology_of(source, written, slow, acker_high_water=2))
    assert running.statistics().components["numbers"].overflowed > 0
    assert written == parts(100, 100)
    assert set(seen.values()) == {1}


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
async def test_X8_joins_and_fan_out_in_cut_epochs(seed: int) -> None:
    """Failures in any branch before and after a join leave each sum, and each copy, in its sink once."""
    source = Source(100, 20)
    sums, copies = Written(), Written()
    topology = Topology("joined", max_attempts=50, replay_delay=0.01)
    numbers = topology.spout("numbers", source, outputs=int)
    checked = topology.bolt("check", flaky(Random(seed)), numbers.shuffle(), parallelism=2)
    paired = topology.bolt("pair", Pairs, checked.fields(lambda value: value // 2), parallelism=2)
    again = topology.bolt("again", flaky(Random(seed + 100)), paired.shuffle())

    def write_sums() -> Notes:
        return Notes(noting(source, sums))

    def write_copies() -> Notes:
        return Notes(noting(source, copies))

    topology.bolt("sums", write_sums, again.shuffle())
    topology.bolt("copies", write_copies, checked.shuffle())
    await run_to_end(topology, seed=seed, dead_letters=lambda _: None)
    kept = [value for value in range(100) if value % 20 < 18]
    assert sorted(value for each in copies.values() for value in each) == kept
    assert sorted(value for each in sums.values() for value in each) == [
        2 * value + 1 for value in kept if value % 2 == 0
    ]


# What a source has back.


async def test_X8_a_source_may_have_a_whole_epoch_back() -> None:
    """Nothing of it was written; it hears which message has failed, and emits all of it again under its number."""
    source, written, flaky = Source(20, 10, buries=False), Written(), FailsOnce(13)

    def reject(value: int) -> Iterator[int]:
        try:
            yield from flaky(value)
        except OSError as error:
            raise Reject("unlucky") from error

    running = await run_to_end(topology_of(source, written, reject))
    ((number, failure, blamed),) = source.given_back
    assert (number, failure.reason, blamed) == (1, "unlucky", 13)
    assert written == parts(20, 10)
    counts = running.statistics().components["numbers"]
    assert (counts.messages, counts.acked, counts.given_back, counts.dead_letters) == (
        counts.acked + counts.given_back,
        20,
        counts.given_back,
        0,
    )
    assert counts.given_back > 0


async def test_X8_what_is_given_back_is_not_joined_with_what_comes_again() -> None:
    """A bolt that holds some of it is flushed first (law B8)."""
    source, written, raised = Source(200, 200, buries=False), Written(), list[int]()

    async def once(value: int) -> AsyncIterator[int]:
        if value == 5:
            yield value
            if not raised:
                raised.append(value)
                await asyncio.sleep(1.0)
                raise Reject("not now")

    class Totals(Bolt[int, int]):
        def __init__(self) -> None:
            self.held: list[Tuple[int]] = []

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.held.append(tup)

        def flush(self, out: Collector[int]) -> None:
            held, self.held = self.held, []
            if held:
                out.emit(sum(tup.value for tup in held), anchors=held)
                for tup in held:
                    out.ack(tup)

    topology = Topology("joined", max_spout_pending=5)
    made = topology.bolt("once", once, topology.spout("numbers", source, outputs=int).shuffle(), outputs=int)
    totals = topology.bolt("totals", Totals, made.shuffle(), outputs=int)

    def write() -> Notes:
        return Notes(noting(source, written))

    topology.bolt("write", write, totals.shuffle())
    await run_to_end(topology)
    assert (raised, written) == ([5], {0: [5]})


# What belongs to no epoch of the source.


class Ends(BasicBolt[int, int]):
    """Emits once more at its end."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value)

    def finish(self, out: Collector[int]) -> None:
        out.emit(1000)


class Loses(Bolt[int, int]):
    """Emits without anchors."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value)
        out.ack(tup)


async def test_X8_what_comes_from_no_epoch_of_the_source_crashes_the_run() -> None:
    """Nobody would emit it again after a kill, as what ``finish`` emits at the end."""
    source, written = Source(20, 10), Written()
    with pytest.raises(
        TopologyCrashed, match=r"committer 'write' has got 1000, which comes from no epoch"
    ) as crash:
        await run_to_end(topology_of(source, written, Ends))
    assert isinstance(crash.value.__cause__, NotExactlyOnce)
    assert written == parts(20, 10)


async def test_X8_what_the_host_emits_beside_a_source_that_cuts_crashes_the_run() -> None:
    """It belongs to no epoch of the source."""
    source, written = Source(0, 5), Written()
    topology = Topology("cut")
    numbers = topology.spout("numbers", source, outputs=int)

    def write() -> Notes:
        return Notes(noting(source, written))

    topology.bolt("write", write, numbers.shuffle())

    async def emit() -> None:
        async with topology.run(active=False) as running:
            await running.emit(numbers, 5)
            await running.finished()

    with pytest.raises(TopologyCrashed, match="comes from no epoch of the source"):
        await emit()
    assert written == {}


async def test_X5_what_names_no_anchor_belongs_to_the_cut_epoch_that_is_open() -> None:
    """It is written with it, and repeated with it."""
    source, written = Source(20, 10), Written()
    await run_to_end(topology_of(source, written, Loses))
    assert written == parts(20, 10)


async def test_X8_with_state_what_belongs_to_no_epoch_of_the_source_is_in_one_of_its_own() -> None:
    """The state has it."""
    source, written = Source(20, 10), Written()
    async with topology_of(source, written, Ends).run(state=MemoryStore()) as running:
        await running.finished()
    assert written == {**parts(20, 10, first=1), 3: [1000]}


# With state.


class Count(KeyedBolt[int, int, int]):
    """Counts the numbers by their last digit."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.total += 1
        out.emit(tup.value)


def counting(source: Source, written: Written, logic: Any = None, **options: Any) -> Topology:
    topology = Topology("counting", replay_delay=0.01, **options)
    counted = topology.bolt(
        "count", Count, topology.spout("numbers", source, outputs=int).fields(lambda number: number % 10)
    )
    made = topology.bolt("logic", logic or FailsOnce(), counted.shuffle(), outputs=int)

    def write() -> Notes:
        return Notes(noting(source, written))

    topology.bolt("write", write, made.shuffle())
    return topology


async def test_X8_a_number_that_is_durable_is_not_run_again() -> None:
    """The source had not heard of it when the process died; the state has counted it once."""
    source, written, store = Source(30, 10), Written(), MemoryStore()
    async with counting(source, written).run(state=store) as running:
        await running.finished()
    source.done = 1
    source.total = 40
    async with counting(source, written).run(state=store) as running:
        await running.finished()
        assert dict(running.state("count")) == dict.fromkeys(range(10), 4)
    assert source.skipped == [1, 2]


async def test_X8_a_kill_at_any_moment_counts_each_message_once() -> None:
    """Whatever the state had then, and whatever the source knew to be done."""
    source, written, store = Source(50, 10), Written(), MemoryStore()
    moments: list[tuple[Source, Written, MemoryStore]] = []
    random = Random(3)

    async def unsteady(number: int) -> AsyncIterator[int]:
        await asyncio.sleep(0.01)
        yield number
        if random.random() < 0.02:
            raise OSError("flaky")

    async with counting(source, written, unsteady, max_attempts=50).run(state=store) as running:
        ended = asyncio.ensure_future(running.finished())
        while not ended.done():
            moments.append(deepcopy((source, written, store)))
            await asyncio.sleep(0.003)
    assert len(moments) > 100
    for left, rows, kept in moments[::3]:
        async with counting(left, rows).run(state=kept) as running:
            await running.finished()
            assert dict(running.state("count")) == dict.fromkeys(range(10), 5)
        assert sorted(row for each in rows.values() for row in each) == list(range(50))


async def test_X8_with_state_a_source_is_told_while_the_committer_has_the_epoch() -> None:
    """The rows are durable, and the next epoch runs meanwhile (law X4)."""
    source = Source(20, 10)

    class Slow(Committer[int]):
        async def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
            await asyncio.sleep(10.0)
            source.events.append(("written", epoch.number))

    topology = Topology("slow")
    topology.bolt("write", Slow, topology.spout("numbers", source, outputs=int).shuffle())
    async with topology.run(state=MemoryStore()) as running:
        await running.finished()
    assert source.events == [("done", 0), ("written", 1), ("done", 1), ("written", 2)]


async def test_X8_other_sources_join_the_epochs_of_one_that_cuts() -> None:
    """They wait where it has not emitted all of its own, and come again with it."""
    source, written = Source(20, 10), Written()
    topology = Topology("both", epoch_messages=3, replay_delay=0.01)
    numbers = topology.spout("numbers", source, outputs=int)
    others = topology.spout("others", list(range(100, 107)))
    flaky = FailsOnce(13, 104)
    made = topology.bolt("logic", flaky, numbers.shuffle(), others.shuffle(), outputs=int)

    def write() -> Notes:
        return Notes(noting(source, written))

    topology.bolt("write", write, made.shuffle())
    async with topology.run(state=MemoryStore()) as running:
        await running.finished()
    rows = [row for each in written.values() for row in each]
    assert sorted(rows) == [*range(20), *range(100, 107)]
    for cut in (range(10), range(10, 20)):
        assert len([number for number, each in written.items() if not set(cut).isdisjoint(each)]) == 1


async def test_X8_what_a_source_has_back_leaves_others_in_their_epoch() -> None:
    """These are tried again without it."""
    source, written = Source(10, 10, buries=False), Written()
    topology = Topology("both", replay_delay=0.01)
    flaky = FailsOnce(3)

    def reject(value: int) -> Iterator[int]:
        try:
            yield from flaky(value)
        except OSError as error:
            raise Reject("unlucky") from error

    numbers = topology.spout("numbers", source, outputs=int)
    others = topology.spout("others", [100, 101])
    made = topology.bolt("logic", reject, numbers.shuffle(), others.shuffle(), outputs=int)

    def write() -> Notes:
        return Notes(noting(source, written))

    topology.bolt("write", write, made.shuffle())
    async with topology.run(state=MemoryStore()) as running:
        await running.finished()
    assert [number for number, _, _ in source.given_back] == [0]
    assert sorted(row for each in written.values() for row in each) == [*range(10), 100, 101]


async def test_X8_two_sources_that_cut_are_refused() -> None:
    """The epochs of one are those of the whole topology."""
    topology = Topology("two")
    streams = [topology.spout(name, Source(1, 1), outputs=int).shuffle() for name in ("one", "two")]
    topology.bolt("write", partial(Notes, lambda epoch, rows: None), *streams)
    with pytest.raises(InvalidTopology, match="spouts 'one' and 'two' both cut the epochs"):
        topology.run(state=MemoryStore())
    with pytest.raises(InvalidTopology, match="spouts 'one' and 'two' both cut the epochs"):
        topology.run()


async def test_X8_one_cut_epoch_is_told_before_the_next_begins() -> None:
    """Another one would be part of the same epoch, and be done with it."""

    class Hasty(Numbers):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            out.begin_epoch(0, "numbers").end()
            out.begin_epoch(1, "numbers")

    class OfHasty(Source):
        def __call__(self) -> Numbers:
            return Hasty(self)

    with pytest.raises(TopologyCrashed, match="epoch 0 of numbers was begun and not told; wait for that"):
        await run_to_end(topology_of(OfHasty(1, 1), Written()))


# Stops.


async def slowly(value: int) -> int:
    await asyncio.sleep(0.1)
    return value


async def stop_after(seconds: float, topology: Topology, **options: Any) -> None:
    async with topology.run(**options) as running:
        await asyncio.sleep(seconds)
        running.stop()


async def test_X12_a_cut_epoch_that_was_emitted_to_its_end_is_done_when_the_run_is_stopped() -> None:
    """It is settled in the drain, and its source hears of it."""
    source, written = Source(30, 5), Written()
    await stop_after(0.3, topology_of(source, written, slowly))
    assert written == parts(5, 5)
    assert source.done == 1


async def test_X12_a_part_of_a_cut_epoch_is_given_back_when_the_run_is_stopped() -> None:
    """Nothing of it is done; its messages are left over."""
    source, written = Source(30, 15), Written()
    topology = topology_of(source, written, slowly, max_spout_pending=5)
    async with topology.run() as running:
        await asyncio.sleep(0.3)
        running.stop()
    assert (written, source.done) == ({}, 0)
    counts = running.statistics().components["numbers"]
    assert counts.left_over == counts.messages > 0
    await run_to_end(topology_of(source, written))
    assert written == parts(30, 15)


async def test_X12_a_part_that_its_source_leaves_open_is_given_back_too() -> None:
    """The source says nothing when the topology drains, and finish is called as always."""
    source, written = Source(30, 15, drains=False), Written()
    await stop_after(0.3, topology_of(source, written, slowly, max_spout_pending=5))
    assert (written, source.done) == ({}, 0)


async def test_X12_an_attempt_that_fails_in_the_drain_is_made_again() -> None:
    """As replays are, while the deadline allows (law C3)."""
    source, written = Source(30, 5), Written()
    failed: list[int] = []

    async def fails_late(value: int) -> AsyncIterator[int]:
        yield value
        await asyncio.sleep(0.1)
        if value == 4 and not failed:
            failed.append(value)
            raise OSError("flaky")

    await stop_after(0.35, topology_of(source, written, fails_late))
    assert (failed, written, source.done) == ([4], parts(5, 5), 1)


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("seed", range(15))
async def test_X8_runs_that_are_left_at_random(seed: int, state: bool) -> None:
    """Whenever a run is left, and whatever fails meanwhile, the next ones bring each message exactly once."""
    random = Random(seed)
    source, written, store = Source(100, 10), Written(), MemoryStore()

    async def unsteady(number: int) -> AsyncIterator[int]:
        await asyncio.sleep(random.uniform(0.0, 0.05))
        yield number
        if random.random() < 0.02:
            raise random.choice([OSError("flaky"), OSError("flaky")])

    while source.done < 10:
        source.buries = random.random() < 0.5
        topology = topology_of(source, written, unsteady, max_attempts=random.choice([1, 50]))
        if source.buries:
            topology = topology_of(source, written, unsteady, max_attempts=50)
        options: dict[str, Any] = {"state": store} if state else {}
        try:
            async with asyncio.timeout(random.uniform(0.0, 3.0)), topology.run(**options) as running:
                if random.random() < 0.5:
                    await asyncio.sleep(random.uniform(0.0, 2.0))
                else:
                    await running.finished()
        except TimeoutError:
            pass
    if state:
        async with topology_of(source, written).run(state=store) as running:
            await running.finished()  # what was left to be delivered
    assert sorted(row for each in written.values() for row in each) == list(range(100))
