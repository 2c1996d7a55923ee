"""Every message is acked, given back, a dead letter that its sink has, or left over (law N1)."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    DeadLetter,
    Failure,
    Reject,
    ReliableSpout,
    SpoutCollector,
    StrayCancellation,
    TaskContext,
    Topology,
    Tuple,
    TupleFailed,
)
from stormlet.errors import EndOfStream
from tests.cast import Counting, ignore, raise_value_error
from tests.engines import Engine
from tests.law.cancelled import cancel, conserved, crash, simulated
from tests.law.conserved import SCENARIOS
from tests.law.forced_errors import Scenario, run


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_N1_the_account_of_every_run_adds_up(scenario: Scenario) -> None:
    """Whatever is replayed, given up or cut off; without an error that is forced, nothing else is heard either."""
    _, books = run(scenario)
    assert (list(books.faults()), books.crash, books.unheard) == ([], None, [])


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Sealed(Exception):
    """Lets nothing be set, copied, pickled or printed."""

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError(name)

    def __reduce__(self) -> Any:
        raise TypeError("reduce")

    def __repr__(self) -> str:
        raise TypeError("repr")

    __str__ = __repr__


def raised_from(cause: BaseException) -> Exception:
    try:
        raise ValueError("outer") from cause
    except ValueError as error:
        return error


ODD: list[Callable[[], Exception]] = [
    lambda: Frozen(503),
    Sealed,
    lambda: raised_from(Frozen(503)),
    lambda: raised_from(Sealed()),
    lambda: ExceptionGroup("many", [Frozen(1), Sealed()]),
]


def raising(make: Callable[[], Exception]) -> Callable[[int], int]:
    def bolt(value: int) -> int:
        if value % 3 == 2:
            raise make()
        return value

    return bolt


@simulated
@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("attempts", [1, 3])
async def test_N1_exceptions_that_let_nobody_look_at_them_are_failures(
    engine: Engine, make: Callable[[], Exception], attempts: int
) -> None:
    """Their messages are replayed and become dead letters; the others are acked."""
    topology = Topology("odd", max_attempts=attempts)
    topology.bolt("bolt", raising(make), topology.spout("spout", range(30)).shuffle())
    running = await engine.run_to_end(topology)
    counts = running.statistics().components
    assert (counts["spout"].acked, counts["spout"].dead_letters, counts["bolt"].failed) == (
        20,
        10,
        10 * attempts,
    )
    assert {len(letter.history) for letter in running.dead_letters} == {attempts}


@simulated
async def test_N1_what_is_not_acked_is_a_dead_letter(engine: Engine) -> None:
    """Of numbers that two bolts refuse, each its own, or fail some times or for ever."""

    def first(value: int) -> int:
        if value % 5 == 0:
            raise Reject("five")
        return value

    class Second(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            if tup.attempt < tup.value % 7:
                raise ValueError(tup.value)

    topology = Topology("accounts")
    passed = topology.bolt("first", first, topology.spout("numbers", range(100)).shuffle())
    topology.bolt("second", Second, passed.fields(), parallelism=3)
    ended = await engine.run_to_end(topology)
    counts = ended.statistics().components["numbers"]
    given_up = [number for number in range(100) if number % 5 == 0 or number % 7 > 5]
    assert sorted(each.value for each in ended.dead_letters) == given_up
    assert counts.messages == counts.acked + counts.dead_letters == 100
    assert counts.dead_letters == len(given_up)


@simulated
@pytest.mark.parametrize("make", ODD)
async def test_N1_a_tree_that_fails_of_such_an_exception_has_an_outcome(
    make: Callable[[], Exception],
) -> None:
    """After its last attempt."""
    topology = Topology("odd")
    spout = topology.spout("spout")
    topology.bolt("bolt", raising(make), spout.shuffle())
    async with topology.run() as running:
        tree = await running.emit(spout, 2, attempts=2)
        with pytest.raises(TupleFailed):
            await tree
    assert conserved(running)


@simulated
@pytest.mark.parametrize("make", ODD)
async def test_N1_a_rejection_while_such_an_exception_is_handled_goes_to_the_dead_letters(
    engine: Engine,
    make: Callable[[], Exception],
) -> None:
    """However many there are."""

    def reject(value: int) -> None:
        try:
            raise make()
        except Exception:
            raise Reject("no") from None if value % 2 else Reject("no")

    topology = Topology("odd")
    topology.bolt("bolt", reject, topology.spout("spout", range(30)).shuffle())
    running = await engine.run_to_end(topology)
    assert running.statistics().dead_letters == 30


class SealedReject(Sealed, Reject):
    """A rejection whose text nobody can have."""


@simulated
async def test_N1_a_rejection_that_cannot_be_printed_goes_to_the_dead_letters(engine: Engine) -> None:
    """With the name of its class."""
    topology = Topology("odd")
    topology.bolt("bolt", raising(SealedReject), topology.spout("spout", [2]).shuffle())
    running = await engine.run_to_end(topology)
    assert "SealedReject" in running.dead_letters[0].failure.reason


def refusing(limit: int) -> tuple[list[DeadLetter], Callable[[DeadLetter], None]]:
    letters: list[DeadLetter] = []

    def sink(letter: DeadLetter) -> None:
        if len(letters) == limit:
            raise OSError("the disk is full")
        letters.append(letter)

    return letters, sink


@simulated
async def test_N1_a_letter_that_its_sink_refuses_stays_with_the_spout_that_gave_it() -> None:
    """Where that is a ``Spout`` class: it hears why, and counts nothing."""
    heard: list[OSError] = []

    class GivesUp(Counting):
        count = 5

        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            self.out = out

        async def fail(self, message_id: object, failure: Failure) -> None:
            try:
                await self.out.dead_letter(message_id, failure, message_id=message_id)
            except OSError as error:
                heard.append(error)

    letters, sink = refusing(3)
    topology = Topology("full disk")
    topology.bolt("bolt", raise_value_error, topology.spout("spout", GivesUp).shuffle())
    async with topology.run(dead_letters=sink) as running:
        await running.finished()
    assert (len(heard), len(letters), running.statistics().dead_letters) == (2, 3, 3)
    assert running.statistics().components["spout"].given_back == 5
    assert conserved(running)


@simulated
async def test_N1_a_dead_letter_counts_when_its_sink_has_it() -> None:
    """Else its message is left over."""
    letters, sink = refusing(7)
    topology = Topology("full disk", max_attempts=1)
    topology.bolt("bolt", raise_value_error, topology.spout("spout", range(20)).shuffle())
    running, _ = await crash(topology, dead_letters=sink)
    assert len(letters) == running.statistics().dead_letters == 7
    assert running.statistics().left_over == running.statistics().components["spout"].messages - 7 > 0
    assert len(running.dead_letters) == 7
    assert conserved(running)


@simulated
async def test_N1_a_letter_that_the_end_cuts_off_is_left_over() -> None:
    """An asynchronous sink has it when it has returned."""

    async def slow(letter: DeadLetter) -> None:
        await asyncio.sleep(1000)

    topology = Topology("slow sink", max_attempts=1, drain_timeout=1.0)
    topology.bolt("bolt", raise_value_error, topology.spout("spout", [1]).shuffle())
    async with topology.run(dead_letters=slow) as running:
        await asyncio.sleep(1)
    assert (running.statistics().dead_letters, running.statistics().left_over) == (0, 1)
    assert conserved(running)


@simulated
async def test_N1_what_a_source_gave_and_nobody_could_emit_is_left_over() -> None:
    """As where a key function raises: the restarts tried it again."""

    def key(value: int) -> int:
        return 1 // (3 - value)

    topology = Topology("key", max_restarts=2)
    topology.bolt("bolt", ignore, topology.spout("spout", [1, 2, 3, 4]).fields(key))
    running, _ = await crash(topology)
    counts = running.statistics().components["spout"]
    assert (counts.messages, counts.acked + counts.left_over) == (3, 3)
    assert conserved(running)


@simulated
async def test_N1_every_tree_has_an_outcome_once_its_block_is_left() -> None:
    """However it is left, and also while the tree waits for a replay."""
    topology = Topology("left", replay_delay=20.0)
    spout = topology.spout("spout")
    topology.bolt("bolt", raise_value_error, spout.shuffle())
    with suppress(KeyError):
        async with topology.run() as running:
            trees = [await running.emit(spout, value, attempts=5) for value in range(3)]
            await asyncio.sleep(1)
            raise KeyError
    assert [str(tree.failure).split()[0] for tree in trees] == ["shutdown"] * 3
    assert conserved(running)


class Unheard(ReliableSpout[int]):
    """Gives up by itself; is told of one failure, and takes its time over that."""

    buries = False
    is_done = False

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.is_done:
            raise EndOfStream
        self.is_done = True
        out.emit_many(range(3), message_ids=range(3))

    async def fail(self, message_id: object, failure: Failure) -> None:
        await asyncio.sleep(1000)


@simulated
async def test_N1_a_failure_that_a_spout_was_not_told_of_is_left_over() -> None:
    """It is not given back by having been given up."""
    topology = Topology("untold", max_attempts=1)
    topology.bolt("bolt", raise_value_error, topology.spout("spout", Unheard).shuffle())
    with suppress(KeyError):
        async with topology.run() as running:
            await asyncio.sleep(1)
            raise KeyError
    counts = running.statistics().components["spout"]
    assert (counts.given_back, counts.left_over) == (1, 2)


@simulated
async def test_N1_a_letter_that_arrives_late_counts_once() -> None:
    """The end waits for its sink, also if somebody cancels the task that waits."""

    async def stubborn(letter: DeadLetter) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            await asyncio.sleep(5)

    topology = Topology("t", max_attempts=1, drain_timeout=1.0)
    topology.bolt("bolt", raise_value_error, topology.spout("spout", [1]).shuffle())
    asyncio.get_running_loop().call_later(3, cancel, "t/spout[0]")
    async with topology.run(dead_letters=stubborn) as running:
        await asyncio.sleep(0.5)
    await asyncio.sleep(10)
    assert (running.statistics().dead_letters, running.statistics().left_over) == (1, 0)
    assert conserved(running)


def cut_off() -> Iterator[int]:
    yield 1
    raise asyncio.CancelledError


@simulated
async def test_N1_a_source_that_lets_a_cancellation_out_has_not_ended() -> None:
    """What the generator behind a map would still have yielded is not lost in silence."""
    topology = Topology("t")
    topology.bolt("bolt", ignore, topology.spout("spout", map(abs, cut_off())).shuffle())
    _, error = await crash(topology)
    assert isinstance(error.__cause__, StrayCancellation)
