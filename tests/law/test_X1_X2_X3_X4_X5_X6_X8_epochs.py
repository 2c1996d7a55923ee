"""Messages that belong to epochs: when these end, what is told after, and where the next run goes on (law X1 to X8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    Committer,
    DeadLetter,
    EndOfStream,
    Epoch,
    InvalidTopology,
    KeyedBolt,
    Reject,
    Spout,
    SpoutCollector,
    StartFailed,
    Stream,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.state.commits import Commit
from stormlet.errors import StateUnusable
from stormlet.runtime.dead_letters import LetterFile
from stormlet.runtime.spout.positions import CutPosition, Position, decoded, encoded
from stormlet.state.memory import MemoryStore
from tests.epochs.cutting import Source
from tests.epochs.stores import Kept

pytestmark = pytest.mark.simulated_time


def numbers(count: int, **options: object) -> tuple[Topology, list[int]]:
    """A topology of numbers, and the list of those that its bolt has seen."""
    topology = Topology("numbers", **options)  # type: ignore[arg-type]
    seen: list[int] = []
    topology.bolt("see", seen.append, topology.spout("numbers", list(range(count))).shuffle())
    return topology, seen


async def test_X1_a_finite_run_ends_with_a_commit() -> None:
    """What was emitted is durable when the run has ended (law X12)."""
    topology, seen = numbers(5)
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    assert (seen, store.epochs) == ([0, 1, 2, 3, 4], [1])
    assert running.statistics().components["numbers"].acked == 5
    assert store.closed == 1


async def test_X2_an_epoch_ends_when_it_is_full() -> None:
    """``epoch_messages`` is its bound, and the numbers have no gaps (law X2)."""
    topology, _ = numbers(10, epoch_messages=4)
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    assert store.epochs == [1, 2, 3]


async def test_X1_an_epoch_ends_some_seconds_after_its_first_message() -> None:
    """A source that gives little does not keep what it gave waiting."""
    topology = Topology("slow", epoch_seconds=2.0)
    store = Kept()

    async def slow() -> object:
        for each in range(3):
            await asyncio.sleep(1.5)
            yield each

    topology.bolt("see", lambda value: None, topology.spout("slow", slow).shuffle())
    times: list[float] = []
    keep = store.commit
    store.commit = lambda commit: (times.append(asyncio.get_running_loop().time()), keep(commit))[1]  # type: ignore[method-assign]
    began = asyncio.get_running_loop().time()
    async with topology.run(state=store) as running:
        await running.finished()
    assert [round(each - began, 3) for each in times] == [3.5, 4.5]


async def _seconds_of(topology: Topology) -> float:
    began = asyncio.get_running_loop().time()
    await _whole(topology, Kept())
    return asyncio.get_running_loop().time() - began


async def _slowly(value: int) -> None:
    await asyncio.sleep(2)


async def test_X1_calls_that_are_longer_than_an_epoch_hold_up_the_sources_little() -> None:
    """With an epoch each second they would wait for two thirds of the time."""
    topology = Topology("slow")
    numbers = topology.spout("numbers", list(range(1000)))
    topology.bolt("slow", _slowly, numbers.shuffle(), concurrency=10, queue_capacity=1)
    assert await _seconds_of(topology) < 1.25 * 1000 / 10 * 2


async def test_X1_an_epoch_that_the_host_waits_for_is_not_longer_than_wanted() -> None:
    """Though calls have held up the sources for some seconds, and another one would last for ten."""
    topology = Topology("slow")
    fed, numbers = topology.spout("fed"), topology.spout("numbers", list(range(1000)))
    topology.bolt("slow", _slowly, numbers.shuffle(), concurrency=10, queue_capacity=1)
    topology.bolt("see", lambda value: None, fed.shuffle())
    loop = asyncio.get_running_loop()
    async with topology.run(state=Kept()) as running:
        await asyncio.sleep(4)
        began = loop.time()
        await (await running.emit(fed, 1))
        assert loop.time() - began < 6
        running.stop()


class Tally(KeyedBolt[int, int, int]):
    """Counts numbers."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.total += 1


class Unwritten(Committer[int]):
    """Drops its rows."""

    def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
        pass


@pytest.mark.parametrize("keeps", ["state", "rows"])
async def test_X1_an_epoch_that_has_changed_much_ends(monkeypatch: pytest.MonkeyPatch, keeps: str) -> None:
    """What it has changed is in memory beside what is committed, and so are its rows."""
    monkeypatch.setattr("stormlet.runtime.epochs.states.MOST_CHANGES", 100)
    topology, store = Topology("large"), Kept()
    many: Stream[int] = topology.bolt(
        "many",
        lambda value: iter(range(value, value + 50)),
        topology.spout("numbers", range(0, 1000, 50)).shuffle(),
    )
    if keeps == "state":
        topology.bolt("tally", Tally, many.fields())
    else:
        topology.bolt("write", Unwritten, many.global_())
    async with topology.run(state=store, max_spout_pending=1) as running:
        await running.finished()
    assert len(store.commits) == 1000 / 100


class Pairs(Spout[int]):
    """Gives numbers, and ends an epoch with each second one."""

    resumable = True

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.next = cast("int", context.resume.get(None, -1)) + 1
        out.end_epoch()  # nothing was emitted that would end

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.next == 101:
            raise EndOfStream
        out.emit(self.next, message_id=self.next)
        self.next += 1
        if self.next % 2 == 0:
            out.end_epoch()


async def test_X1_an_epoch_ends_where_its_source_says_so() -> None:
    """Nothing more is emitted into it, and the last one ends with the run."""
    store, seen = Kept(), list[int]()
    topology = Topology("pairs", epoch_seconds=1000.0)
    topology.bolt("see", seen.append, topology.spout("pairs", Pairs).shuffle())
    await _whole(topology, store)
    lasts = [decoded(commit.positions["pairs[0] of 1"])[None] for commit in store.commits]
    assert lasts == [*range(1, 100, 2), 100]
    assert seen == list(range(101))


async def test_X1_the_end_of_an_epoch_is_nothing_where_there_are_none() -> None:
    """A spout need not know if messages belong to epochs."""
    topology, seen = Topology("pairs"), list[int]()
    topology.bolt("see", seen.append, topology.spout("pairs", Pairs).shuffle())
    async with topology.run() as running:
        await running.finished()
    assert seen == list(range(101))


class Placed:
    """A factory of pairs that names the place of the state."""

    resumable = True

    def __init__(self, place: Path, epoch_messages: int | None = None) -> None:
        self.state_place = str(place)
        self.epoch_messages = epoch_messages

    def __call__(self) -> Pairs:
        return Pairs()


async def test_X8_a_source_may_name_the_file_of_the_state(tmp_path: Path) -> None:
    """Another run goes on by it; the topology says where it is, and may not have another."""
    place, seen = tmp_path / "pairs.state", list[int]()
    topology = Topology("pairs")
    topology.bolt("see", seen.append, topology.spout("pairs", Placed(place)).shuffle())
    for _ in range(2):
        async with topology.run() as running:
            await running.finished()
    assert (seen, topology.state, topology.describe().state) == (list(range(101)), str(place), str(place))
    with pytest.raises(InvalidTopology, match="spout 'pairs' has a checkpoint of its own"):
        topology.run(state=MemoryStore())
    topology.spout("others", Placed(tmp_path / "others.state"))
    with pytest.raises(InvalidTopology, match="spouts 'pairs' and 'others' have checkpoints of their own"):
        topology.run()


async def test_X1_a_source_may_say_how_long_epochs_are(tmp_path: Path) -> None:
    """The user says otherwise."""
    for options, lengths in (({}, (3, 3600.0)), ({"epoch_messages": 7, "epoch_seconds": 1.0}, (7, 1.0))):
        topology = Topology("pairs", **options)  # type: ignore[arg-type]
        topology.spout("pairs", Placed(tmp_path / "s", 3))
        described, _ = topology.describe().configured(topology.configuration, "here")
        configuration = described.configuration
        assert (configuration.epoch_messages, configuration.epoch_seconds) == lengths


async def test_X8_the_next_run_goes_on_after_the_last_epoch() -> None:
    """A list is gone through again, without what is durable (law X8)."""
    topology, seen = numbers(6, epoch_messages=2)
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    store.commits.pop()
    del seen[:]
    async with topology.run(state=store) as running:
        await running.finished()
    assert (seen, store.epochs) == ([4, 5], [1, 2, 3])


async def test_X8_a_source_that_gives_something_else_fails_the_start() -> None:
    """Its position means nothing then."""
    topology, _ = numbers(4)
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    other, _ = numbers(3)
    with pytest.raises(TopologyCrashed) as crash:
        async with other.run(state=store) as running:
            await running.finished()
    assert "gives only 3 values, of which 4 are durable" in str(crash.value.__cause__)


async def test_X8_a_source_whose_last_durable_value_is_another_one_fails_the_start() -> None:
    """It would be gone on with in the midst of something else."""
    store = Kept()
    for values in ([1, 2, 3], [1, 2, 30, 4]):
        topology = Topology("numbers")
        topology.bolt("see", lambda value: None, topology.spout("numbers", values).shuffle())
        if 30 in values:
            with pytest.raises(TopologyCrashed) as crash:
                await _whole(topology, store)
            assert "its value 3 is another one now: 30" in str(crash.value.__cause__)
        else:
            await _whole(topology, store)


async def test_X8_a_last_durable_value_that_holds_itself_is_passed_over() -> None:
    """It has no short form to compare, as a value of a type that cannot be kept."""
    store, endless = Kept(), list[object]()
    endless.append(endless)
    for number in (1, 2):
        topology = Topology("lists")
        topology.bolt("see", lambda value: None, topology.spout("lists", [endless] * number).shuffle())
        await _whole(topology, store)
    assert len(store.commits) == 2


async def _whole(topology: Topology, store: Kept) -> None:
    async with topology.run(state=store) as running:
        await running.finished()


async def test_X3_the_host_hears_when_its_epoch_is_durable() -> None:
    """Its message is acked after the commit, which does not wait for the end of the epoch's time (law X3)."""
    topology = Topology("fed", epoch_seconds=1000.0)
    fed = topology.spout("fed")
    topology.bolt("see", lambda value: None, fed.shuffle())
    store = Kept()
    async with topology.run(state=store) as running:
        tree = await running.emit(fed, 1)
        await tree
        assert store.epochs == [1]


async def test_X3_the_host_hears_of_any_number_of_messages_while_the_source_is_silent() -> None:
    """Nothing else has to happen for that."""

    async def silent() -> AsyncIterator[int]:
        await asyncio.sleep(1000)
        yield 0

    topology = Topology("fed")
    fed = topology.spout("fed", silent)
    topology.bolt("see", lambda value: None, fed.shuffle())
    async with topology.run(state=Kept()) as running, asyncio.timeout(10):
        trees = [await running.emit(fed, number) for number in range(600)]
        for tree in trees:
            await tree


async def test_X6_a_failed_message_that_has_reached_no_state_is_replayed_in_its_epoch() -> None:
    """It spoils nothing (law X6)."""
    topology = Topology("failing")
    attempts: list[int] = []

    def fail_once(value: int) -> None:
        attempts.append(value)
        if attempts == [0, 1]:
            raise ValueError("once")

    topology.bolt("fail", fail_once, topology.spout("numbers", [0, 1, 2]).shuffle())
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    assert (attempts, store.epochs) == ([0, 1, 2, 1], [1])
    assert running.statistics().components["numbers"].acked == 3


async def test_X3_a_message_that_is_given_up_is_a_dead_letter_after_the_commit() -> None:
    """Nobody hears of it before (law X3, X12)."""
    topology = Topology("failing", max_attempts=2)

    def fail(value: int) -> None:
        if value == 1:
            raise ValueError("always")

    topology.bolt("fail", fail, topology.spout("numbers", [0, 1, 2]).shuffle())
    store = Kept()
    letters: list[tuple[object, list[int]]] = []
    async with topology.run(
        state=store, dead_letters=lambda letter: letters.append((letter.value, store.epochs))
    ) as running:
        await running.finished()
    assert letters == [(1, [1])]
    assert running.statistics().components["numbers"].dead_letters == 1


async def test_X4_a_write_that_fails_crashes_the_run_and_nobody_is_told() -> None:
    """Everything up to the epoch before is kept (law X1)."""
    topology, _ = numbers(3)
    store = Kept()
    store.fails = True
    with pytest.raises(TopologyCrashed) as crash:
        async with topology.run(state=store) as running:
            await running.finished()
    assert isinstance(crash.value.__cause__, StateUnusable)
    assert running.statistics().components["numbers"].left_over == 3


async def test_X5_what_a_tick_emits_belongs_to_the_epoch() -> None:
    """Within epochs nothing is untracked (law X5)."""

    class Ticking(BasicBolt[int, str]):
        def execute(self, tup: object, out: Collector[str]) -> None:
            pass

        def finish(self, out: Collector[str]) -> None:
            out.emit("total")

    topology = Topology("ticking")
    last: list[tuple[str, list[int]]] = []
    store = Kept()
    totals = topology.bolt("ticking", Ticking, topology.spout("numbers", [0, 1]).shuffle())

    async def see(value: str) -> None:
        await asyncio.sleep(5)
        last.append((value, store.epochs))

    topology.bolt("see", see, totals.shuffle())
    async with topology.run(state=store) as running:
        await running.finished()
    assert last == [("total", [])]
    assert store.epochs == [1]


def resumable(given: list[object]) -> object:
    def source(resume: object = None) -> Iterator[int]:
        given.append(resume)
        yield from range(0 if resume is None else int(str(resume)) + 1, 4)

    return source


async def test_X8_a_generator_that_takes_resume_is_called_with_the_last_durable_value() -> None:
    """It need not give again what is durable (law X8)."""
    given: list[object] = []
    topology = Topology("resumed")
    seen: list[int] = []
    topology.bolt("see", seen.append, topology.spout("numbers", resumable(given)).shuffle())  # type: ignore[arg-type]
    store = Kept()
    async with topology.run(state=store, epoch_messages=2) as running:
        await running.finished()
    store.commits.pop()
    async with topology.run(state=store) as running:
        await running.finished()
    assert (given, seen) == ([None, 1], [0, 1, 2, 3, 2, 3])


class Letters(Spout[str]):
    """Gives the letters of several shelves, each from its last durable one on."""

    resumable = True
    shelves: ClassVar[dict[str, str]] = {"x": "abc", "y": "def"}

    def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
        self.left = [
            (shelf, place)
            for shelf, letters in self.shelves.items()
            for place in range(_after(context.resume.get(shelf)), len(letters))
        ]

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        if not self.left:
            raise EndOfStream
        shelf, place = self.left.pop(0)
        out.emit(self.shelves[shelf][place], message_id=(shelf, place))

    def partition(self, message_id: object) -> str:
        return cast("tuple[str, int]", message_id)[0]


def _after(last: object) -> int:
    return 0 if last is None else cast("tuple[str, int]", last)[1] + 1


async def test_X8_a_spout_class_is_told_the_last_durable_message_of_each_partition() -> None:
    """It goes on after these (law X8)."""
    topology = Topology("letters", epoch_messages=4)
    seen: list[str] = []
    topology.bolt("see", seen.append, topology.spout("letters", Letters).shuffle())
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    store.commits.pop()
    async with topology.run(state=store) as running:
        await running.finished()
    assert "".join(seen) == "abcdefef"


async def test_X8_a_spout_class_says_what_it_goes_on_by() -> None:
    """Where the id alone does not tell; it is asked about the last message of an epoch (law X8)."""
    asked: list[object] = []

    class Numbers(Spout[int]):
        resumable = True

        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            kept = cast("dict[str, int]", context.resume.get(None, {}))
            self.left = list(range(kept.get("after", 0), 6))
            assert context.is_durable

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            if not self.left:
                raise EndOfStream
            out.emit(self.left[0], message_id=f"number {self.left.pop(0)}")

        def position_of(self, message_id: object) -> object:
            asked.append(message_id)
            return {"after": int(str(message_id).removeprefix("number ")) + 1}

    topology = Topology("numbers", epoch_messages=2)
    seen: list[int] = []
    topology.bolt("see", seen.append, topology.spout("numbers", Numbers).shuffle())
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    store.commits.pop()
    async with topology.run(state=store) as running:
        await running.finished()
    assert seen == [0, 1, 2, 3, 4, 5, 4, 5]
    assert asked == ["number 1", "number 3", "number 5", "number 5"]


async def test_X1_a_dead_letter_that_its_sink_has_not_got_comes_in_the_next_run() -> None:
    """It is durable with its epoch, and delivered before anything else (law X1)."""

    def reject(value: int) -> None:
        if value == 1:
            raise Reject("never")

    def lose(letter: DeadLetter) -> None:
        raise OSError("the sink is gone")

    topology = Topology("rejecting")
    topology.bolt("reject", reject, topology.spout("numbers", [0, 1, 2]).shuffle())
    store = Kept()
    with pytest.raises(TopologyCrashed):
        async with topology.run(state=store, dead_letters=lose) as running:
            await running.finished()
    letters: list[DeadLetter] = []
    for _ in range(2):
        async with topology.run(state=store, dead_letters=letters.append) as running:
            await running.finished()
    assert [(each.component, each.value, each.failure.reason) for each in letters] == [
        ("numbers", 1, "never; Reject('never')")
    ]


class Shelved(Letters):
    """Says of each letter where it is from."""

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        if not self.left:
            raise EndOfStream
        shelf, place = self.left.pop(0)
        out.emit(self.shelves[shelf][place], message_id=(shelf, place), origin=(shelf, [place]))


async def test_X1_a_dead_letter_of_an_earlier_run_has_its_origin() -> None:
    """By it people find what the message came of, and a replay gives it to the bolts again (law X1)."""

    def reject(value: str) -> None:
        if value == "b":
            raise Reject("never")

    def lose(letter: DeadLetter) -> None:
        raise OSError("the sink is gone")

    topology = Topology("rejecting")
    topology.bolt("reject", reject, topology.spout("letters", Shelved).shuffle())
    store = Kept()
    with pytest.raises(TopologyCrashed):
        async with topology.run(state=store, dead_letters=lose) as running:
            await running.finished()
    letters: list[DeadLetter] = []
    async with topology.run(state=store, dead_letters=letters.append) as running:
        await running.finished()
    assert [(each.value, each.origin) for each in letters] == [("b", ("x", [1]))]


async def test_X8_a_spout_class_that_cannot_go_on_is_refused() -> None:
    """Its messages would be lost or counted twice."""

    class Forgetful(Letters):
        resumable = False

    topology = Topology("letters")
    topology.bolt("see", lambda value: None, topology.spout("letters", Forgetful).shuffle())
    with pytest.raises(InvalidTopology, match="spout 'letters' cannot go on where the state ends"):
        topology.run(state=Kept())


async def test_X8_a_spout_keeps_its_parallelism() -> None:
    """Its tasks share the work by their number."""

    def share(context: TaskContext) -> Iterator[int]:
        yield from range(context.task_index, 10, context.parallelism)

    store = Kept()
    for parallelism in (2, 3):
        topology = Topology("shares")
        topology.bolt(
            "see", lambda value: None, topology.spout("numbers", share, parallelism=parallelism).shuffle()
        )
        if parallelism == 3:
            with pytest.raises(
                StateUnusable, match="had parallelism=2 when its position was kept, and has 3 now"
            ):
                async with topology.run(state=store):
                    pass
        else:
            async with topology.run(state=store) as running:
                await running.finished()


async def test_X8_undeclared_state_is_refused() -> None:
    """The next run would miss it."""

    class Undeclared(BasicBolt[int, None]):
        keeps_state = True

        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            pass

    topology = Topology("undeclared")
    topology.bolt("undeclared", Undeclared, topology.spout("numbers", [1]).shuffle())
    with pytest.raises(InvalidTopology, match="bolt 'undeclared' keeps state that it does not declare"):
        topology.run(state=Kept())


class Shelf(Spout[str]):
    """Gives letters one by one, of two shelves in turn; its first instance dies after four."""

    resumable = True
    instances: ClassVar[list[dict[object, object]]] = []

    def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
        self.instances.append(dict(context.resume))
        given = {shelf: cast("tuple[str, int]", last)[1] for shelf, last in context.resume.items()}
        self.left = [(shelf, place) for place in range(3) for shelf in "xy" if place > given.get(shelf, -1)]

    async def next_tuple(self, out: SpoutCollector[str]) -> None:
        if not self.left:
            raise EndOfStream
        await asyncio.sleep(0.1)
        if len(self.left) == 2 and len(self.instances) == 1:
            raise OSError("the connection is lost")
        shelf, place = self.left.pop(0)
        out.emit(f"{shelf}{place}", message_id=(shelf, place))

    def partition(self, message_id: object) -> str:
        return cast("tuple[str, int]", message_id)[0]


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("epoch_messages", [1, 3, 100])
async def test_X8_another_instance_of_a_spout_goes_on_after_what_was_emitted(epoch_messages: int) -> None:
    """What is emitted and not durable is the engine's to emit again; idle partitions keep their place."""
    Shelf.instances = []
    topology = Topology("letters", epoch_messages=epoch_messages)
    seen: list[str] = []
    topology.bolt("see", seen.append, topology.spout("shelf", Shelf).shuffle())
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    assert sorted(seen) == ["x0", "x1", "x2", "y0", "y1", "y2"]
    assert Shelf.instances == [{}, {"x": ("x", 1), "y": ("y", 1)}]
    async with topology.run(state=store) as running:
        await running.finished()
    assert Shelf.instances[2] == {"x": ("x", 2), "y": ("y", 2)}


async def test_X8_a_source_that_has_another_name_is_refused() -> None:
    """It would give everything again."""
    store = Kept()
    topology, _ = numbers(3)
    async with topology.run(state=store) as running:
        await running.finished()
    other = Topology("numbers")
    other.bolt("see", lambda value: None, other.spout("renamed", [0, 1, 2]).shuffle())
    with pytest.raises(
        StateUnusable, match="belongs to no spout of this topology; give the spout its id 'numbers'"
    ):
        async with other.run(state=store):
            pass


class Resuming(Spout[int]):
    """Has nothing to give."""

    resumable = True

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        raise EndOfStream


@pytest.mark.parametrize(
    ("position", "sources"),
    [
        (Position(3, None).encoded(), [Resuming, Source(0, 1)]),
        (encoded({None: 3}), [[0, 1, 2], Source(0, 1)]),
        (CutPosition("numbers", 3).encoded(), [Resuming, [0, 1, 2], None]),
    ],
)
async def test_X8_the_position_of_another_kind_of_source_is_refused(
    position: bytes, sources: Sequence[Any]
) -> None:
    """It would mean nothing to this one, or something else; the refusal says how to have it forgotten."""
    for source in sources:
        store = MemoryStore()
        store.commit(Commit(1, 0.0, {"numbers[0] of 1": position}))
        topology = Topology("numbers")
        topology.bolt("see", lambda value: None, topology.spout("numbers", source).shuffle())
        with pytest.raises(
            StateUnusable,
            match=r"spout 'numbers' was another kind of source.*forgotten \(`stormlet state forget`",
        ):
            async with topology.run(state=store):
                pass


async def test_X1_a_dead_letter_stays_until_its_sink_has_taken_it() -> None:
    """A sink that raises at the start of the next run has not."""

    def reject(value: int) -> None:
        raise Reject("never")

    def lose(letter: DeadLetter) -> None:
        raise OSError("the sink is gone")

    topology = Topology("rejecting")
    topology.bolt("reject", reject, topology.spout("numbers", [1]).shuffle())
    store = Kept()
    with pytest.raises(TopologyCrashed):
        async with topology.run(state=store, dead_letters=lose) as running:
            await running.finished()
    with pytest.raises(StartFailed, match="delivery of the dead letters of the last run raised"):
        async with topology.run(state=store, dead_letters=lose):
            pass
    letters: list[DeadLetter] = []
    async with topology.run(state=store, dead_letters=letters.append) as running:
        await running.finished()
    assert [each.value for each in letters] == [1]


async def test_X1_a_file_of_dead_letters_is_synced_before_it_is_noted_that_it_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the store forgets the device must have; nothing is synced where there was no letter."""
    events: list[object] = []
    monkeypatch.setattr(LetterFile, "sync", lambda file: events.append("synced"))

    def reject(number: int) -> None:
        if number in (1, 5):
            raise Reject("never")

    topology = Topology("rejecting", epoch_messages=2)
    topology.bolt("reject", reject, topology.spout("numbers", list(range(6))).shuffle())
    store = Kept()
    keep, note = store.commit, store.note_delivered
    store.commit = lambda commit: (events.append(commit.letters_delivered), keep(commit))[1]  # type: ignore[method-assign]
    store.note_delivered = lambda rows, letters: (events.append(("end", letters)), note(rows, letters))[1]  # type: ignore[method-assign]
    async with topology.run(state=store, dead_letters=tmp_path / "letters") as running:
        await running.finished()
    assert [each for each in events if each != ("end", 0)] == [0, "synced", 1, 2, "synced", ("end", 3)]
