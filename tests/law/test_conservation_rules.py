"""The rules N1 to N3 of the law, on the running engine."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, ClassVar

import pytest

from stormlet import (
    BatchBolt,
    Bolt,
    Collector,
    DeadLetter,
    Failure,
    Reject,
    ReliableSpout,
    Running,
    Spout,
    SpoutCollector,
    StrayCancellation,
    Stream,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
    TupleFailed,
)
from stormlet.errors import EndOfStream
from tests.cast import Counting, Ticks, ignore, raise_value_error, take_a_second
from tests.helpers import interpreted_only, now, run_to_end
from tests.law.conserved import SCENARIOS
from tests.law.forced_errors import Scenario, run, strikes_of

simulated = pytest.mark.simulated_time


# N1: every message is acked, given back, a dead letter that its sink has, or left over.


def conserved(running: Running) -> bool:
    """The account of each spout adds up, and nothing is pending."""
    spouts = [each for each in running.statistics().components.values() if each.messages]
    return bool(spouts) and all(
        each.messages == each.acked + each.given_back + each.dead_letters + each.left_over
        and not each.pending
        for each in spouts
    )


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
    make: Callable[[], Exception], attempts: int
) -> None:
    """Their messages are replayed and become dead letters; the others are acked."""
    topology = Topology("odd", max_attempts=attempts)
    topology.bolt("bolt", raising(make), topology.spout("spout", range(30)).shuffle())
    running = await run_to_end(topology)
    counts = running.statistics().components["spout"]
    assert (counts.acked, counts.dead_letters, counts.failed) == (20, 10, 10 * attempts)
    assert {len(letter.history) for letter in running.dead_letters} == {attempts}


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
    running = await run_to_end(topology)
    assert running.statistics().dead_letters == 30


class SealedReject(Sealed, Reject):
    """A rejection whose text nobody can have."""


@simulated
async def test_N1_a_rejection_that_cannot_be_printed_goes_to_the_dead_letters() -> None:
    """With the name of its class."""
    topology = Topology("odd")
    topology.bolt("bolt", raising(SealedReject), topology.spout("spout", [2]).shuffle())
    running = await run_to_end(topology)
    assert "SealedReject" in running.dead_letters[0].failure.reason


def refusing(limit: int) -> tuple[list[DeadLetter], Callable[[DeadLetter], None]]:
    letters: list[DeadLetter] = []

    def sink(letter: DeadLetter) -> None:
        if len(letters) == limit:
            raise OSError("the disk is full")
        letters.append(letter)

    return letters, sink


async def crash(
    topology: Topology, cancelled: str | None = None, **options: Any
) -> tuple[Running, TopologyCrashed]:
    """Run it until it crashes; somebody cancels one of its tasks meanwhile."""
    block = topology.run(**options)
    running = await block.__aenter__()
    if cancelled is not None:
        asyncio.get_running_loop().call_later(0.5, cancel, cancelled)
    with suppress(asyncio.CancelledError, TopologyCrashed):
        await running.finished()
    with pytest.raises(TopologyCrashed) as caught:
        await block.__aexit__(None, None, None)
    return running, caught.value


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


# N2: what the engine itself raises puts the message back, or crashes the topology with the message counted.


@pytest.fixture
def collected() -> Iterator[None]:
    """Coroutines that were never awaited are reported here, and not in another test."""
    yield
    gc.collect()


@interpreted_only
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("collected")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_N2_no_message_slips_whatever_call_of_the_engine_raises(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of them, one after the other, as a traced run has found them."""
    caplog.set_level(logging.CRITICAL)
    logging.disable(logging.ERROR)
    try:
        strikes = strikes_of(scenario, turn=SCENARIOS.index(scenario))
        faults = {str(strike): list(run(scenario, strike)[1].faults()) for strike in strikes}
    finally:
        logging.disable(logging.NOTSET)
    assert len(strikes) > 200
    assert {strike: found for strike, found in faults.items() if found} == {}


@simulated
@interpreted_only
async def test_N2_an_error_of_the_engine_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would come again, and what it left half done would be trusted; the crash names the engine, not user code."""
    monkeypatch.setattr("stormlet.runtime.spout.tracker.Tracker._settle_failed", raise_value_error)
    topology = Topology("broken")
    topology.bolt("bolt", raise_value_error, topology.spout("spout", [1]).shuffle())
    with pytest.raises(TopologyCrashed, match=r"the engine's part of spout\[0\] raised") as caught:
        await run_to_end(topology)
    assert isinstance(caught.value.__cause__, TypeError)


class Stopping(Spout[int]):
    """Lets a StopIteration out of one of its methods, once."""

    def __init__(self, method: str, raised: list[str]) -> None:
        self._method = method
        self._raised = raised
        self._values = iter(range(3))

    def _raise_in(self, method: str) -> None:
        if method == self._method and not self._raised:
            self._raised.append(method)
            next(iter(()))

    def activate(self) -> None:
        self._raise_in("activate")

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        self._raise_in("next_tuple")
        value = next(self._values, None)
        if value is None:
            raise EndOfStream
        out.emit(value, message_id=value)

    def ack(self, message_id: object) -> None:
        self._raise_in("ack")

    def fail(self, message_id: object, failure: Failure) -> None:
        self._raise_in("fail")


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("method", ["activate", "next_tuple", "ack", "fail"])
async def test_N2_a_stop_iteration_of_a_spout_is_no_error_of_the_engine(method: str) -> None:
    """Though Python raises another error where one would leave a coroutine."""
    topology = Topology("t")
    spout = topology.spout("spout", partial(Stopping, method, raised := []))
    topology.bolt("bolt", raise_value_error if method == "fail" else ignore, spout.shuffle())
    running = await run_to_end(topology)
    assert (raised, running.statistics().components["spout"].restarts) == ([method], 1)


@simulated
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_N2_a_stop_iteration_of_a_bolt_is_no_error_of_the_engine(concurrency: int) -> None:
    """A bolt that is to die of it does, and lives on."""
    raised: list[int] = []

    def bolt(value: int) -> None:
        if not raised:
            raised.append(value)
            next(iter(()))

    topology = Topology("t")
    spout = topology.spout("spout", range(3))
    topology.bolt("bolt", bolt, spout.shuffle(), on_error="restart", concurrency=concurrency)
    running = await run_to_end(topology)
    assert running.statistics().components["bolt"].restarts == 1
    assert running.statistics().components["spout"].acked == 3


# N3: a task never ends unnoticed.

cancelling = pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
"""No tuple answers for what a task dies of."""


def cancel(name: str) -> None:
    """As somebody else's code does."""
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == name)
    task.cancel()


class Polled(Counting):
    """Takes a second for each message."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:  # type: ignore[override]
        await asyncio.sleep(1)
        super().next_tuple(out)


def slow_topology(**options: Any) -> Topology:
    topology = Topology("t", **options)
    topology.bolt("bolt", take_a_second, topology.spout("spout", range(4)).shuffle())
    topology.bolt("polled", ignore, topology.spout("poll", Polled).shuffle())
    return topology


@cancelling
@pytest.mark.parametrize("moment", [0.0, 0.5, 1.5])
@pytest.mark.parametrize("name", ["spout", "bolt", "poll", "polled", "__acker"])
async def test_N3_a_task_that_somebody_cancels_is_restarted(
    name: str, moment: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever it waits; what it had in hand fails at once, and the log has it."""
    async with slow_topology().run() as running:
        await asyncio.sleep(moment)
        cancel(f"t/{name}[0]")
        await running.finished()
        assert asyncio.get_running_loop().time() < 10
    counts = running.statistics()
    assert (counts.components[name].restarts, counts.dead_letters, counts.left_over) == (1, 0, 0)
    assert "somebody else has cancelled" in caplog.text


@cancelling
@pytest.mark.parametrize("name", ["spout", "bolt", "poll", "__acker"])
async def test_N3_beyond_its_restarts_the_topology_crashes(name: str) -> None:
    """With every message counted."""
    running, error = await crash(slow_topology(max_restarts=0), f"t/{name}[0]")
    assert isinstance(error.__cause__, StrayCancellation)
    assert conserved(running)


@cancelling
async def test_N3_a_concurrent_call_that_somebody_cancels_fails_its_input_at_once() -> None:
    """The others go on."""
    topology = Topology("t", max_attempts=1)
    topology.bolt("bolt", take_a_second, topology.spout("spout", range(4)).shuffle(), concurrency=4)
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        next(task for task in asyncio.all_tasks() if task.get_name() == "bolt[0] execute").cancel()
        await running.finished()
        assert asyncio.get_running_loop().time() == 1
    (letter,) = running.dead_letters
    assert isinstance(letter.failure.exception, StrayCancellation)
    assert running.statistics().components["spout"].acked == 3
    bolt = running.statistics().components["bolt"]
    assert (bolt.executed, bolt.acked, bolt.failed) == (4, 3, 1)


@cancelling
async def test_N3_a_batch_whose_call_somebody_cancels_fails_with_all_of_its_inputs() -> None:
    """At once, and the next batch goes on."""

    class Slow(BatchBolt[int, None]):
        size = 3

        async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
            await asyncio.sleep(1)

    topology = Topology("t", max_attempts=1)
    topology.bolt("bolt", Slow, topology.spout("spout", range(6)).shuffle(), concurrency=6)
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        next(task for task in asyncio.all_tasks() if task.get_name() == "bolt[0] execute").cancel()
        await running.finished()
        assert asyncio.get_running_loop().time() == 1
    assert [letter.value for letter in running.dead_letters] == [0, 1, 2]
    assert {type(letter.failure.exception) for letter in running.dead_letters} == {StrayCancellation}
    assert running.statistics().components["spout"].acked == 3
    bolt = running.statistics().components["bolt"]
    assert (bolt.executed, bolt.acked, bolt.failed) == (6, 3, 3)


@cancelling
@pytest.mark.parametrize("name", ["conductor", "ticker", "ticks of ticked"])
async def test_N3_a_helper_that_somebody_cancels_crashes_the_topology(name: str) -> None:
    """Without it the topology would stand still."""
    topology = slow_topology()
    topology.bolt("ticked", Ticks, topology.spout("other").shuffle(), tick=1.0)
    running, error = await crash(topology, f"t {name}")
    assert (error.task, error.what, type(error.__cause__)) == ("the engine", f"the {name}", StrayCancellation)
    assert conserved(running)


class Slow(Bolt[int, None]):
    """Takes a second to be prepared, and to clean up; dies of its first input."""

    async def prepare(self, context: object) -> None:
        await asyncio.sleep(1)

    async def cleanup(self) -> None:
        await asyncio.sleep(1)

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        out.ack(tup)


@cancelling
@pytest.mark.parametrize("moment", [0.5, 1.05, 1.5])
async def test_N3_a_task_that_is_cancelled_between_two_lives_lives_on(moment: float) -> None:
    """While it cleans up, pauses, or prepares its next instance."""
    topology = Topology("t")
    spout: Stream[int] = topology.spout("spout")
    topology.bolt("slow", Slow, spout.shuffle())
    async with topology.run() as running:
        running.kill("slow")
        await asyncio.sleep(moment)
        cancel("t/slow[0]")
        await (await running.emit(spout, 1))
    assert running.statistics().components["slow"].acked == 1


@cancelling
async def test_N3_a_task_that_is_cancelled_while_it_starts_fails_the_start() -> None:
    """As an exception of its prepare does."""
    topology = Topology("t")
    topology.bolt("slow", Slow, topology.spout("spout").shuffle())
    asyncio.get_running_loop().call_later(0.5, cancel, "t/slow[0]")
    with pytest.raises(TopologyCrashed, match="did not start: prepare of slow"):
        async with topology.run():
            pass


@cancelling
@pytest.mark.parametrize("name", ["__acker", "slow"])
async def test_N3_a_task_that_is_cancelled_before_its_first_step_crashes_the_topology(name: str) -> None:
    """Nobody waits for it for ever."""
    topology = Topology("t")
    topology.bolt("slow", Slow, topology.spout("spout").shuffle())
    asyncio.get_running_loop().call_soon(cancel, f"t/{name}[0]")
    with pytest.raises(TopologyCrashed, match=f"start of {name}.0. raised StrayCancellation"):
        async with topology.run():
            pass


@cancelling
@pytest.mark.parametrize("pause", [0.0, 0.5])
async def test_N3_a_drain_that_somebody_cancels_crashes_the_topology(pause: float) -> None:
    """Else what it leaves over would pass for what was asked for."""
    block = slow_topology().run()
    running = await block.__aenter__()
    running.stop()
    asyncio.get_running_loop().call_later(pause, cancel, "t drain")
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(100)
    with pytest.raises(TopologyCrashed, match="the drain") as caught:
        await block.__aexit__(None, None, None)
    assert isinstance(caught.value.__cause__, StrayCancellation)
    assert conserved(running)


@cancelling
async def test_N3_an_end_that_somebody_cancels_ends_all_the_same() -> None:
    """Also before its first step, and the host does not hear of it."""
    loop = asyncio.get_running_loop()
    block = slow_topology().run()
    running = await block.__aenter__()
    await asyncio.sleep(0.5)
    loop.call_soon(cancel, "t end")
    await block.__aexit__(KeyError, KeyError(), None)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert conserved(running)


class Stubborn(Slow):
    """Goes on for a while with a call that is cancelled."""

    cleaned: ClassVar[list[float]] = []

    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:  # type: ignore[override]
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        await asyncio.sleep(3)

    async def cleanup(self) -> None:
        self.cleaned.append(now())


@cancelling
async def test_N3_a_task_that_is_cancelled_while_it_ends_cleans_up() -> None:
    """After all of its calls."""
    Stubborn.cleaned.clear()
    topology = Topology("t")
    topology.bolt("slow", Stubborn, topology.spout("spout", range(2)).shuffle(), concurrency=2)
    with suppress(KeyError):
        async with topology.run():
            await asyncio.sleep(1)
            asyncio.get_running_loop().call_later(1, cancel, "t/slow[0]")
            raise KeyError
    assert Stubborn.cleaned == [5]


class Untidy(Slow):
    """Awaits what it has cancelled."""

    async def cleanup(self) -> None:
        helper = asyncio.create_task(asyncio.sleep(1000))
        helper.cancel()
        await helper


@cancelling
async def test_N3_a_cancellation_that_cleanup_lets_out_is_told_by_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As any other exception of it is."""
    topology = Topology("t")
    topology.bolt("untidy", Untidy, topology.spout("spout").shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert "cleanup of untidy[0] raised StrayCancellation" in caplog.text


@cancelling
async def test_N3_a_kill_and_a_cancellation_at_once_are_one_death() -> None:
    """The next life does not take a cancellation of its own code for one by somebody else."""

    async def trip(value: int) -> None:
        await asyncio.sleep(1)
        helper = asyncio.create_task(asyncio.sleep(1000))
        helper.cancel()
        await helper

    topology = Topology("t")
    spout = topology.spout("spout")
    topology.bolt("bolt", trip, spout.shuffle())
    async with topology.run() as running:
        await running.emit(spout, 1)
        await asyncio.sleep(0.5)
        cancel("t/bolt[0]")
        running.kill("bolt")
        with pytest.raises(TupleFailed, match="user code awaited"):
            await (await running.emit(spout, 2))
    assert running.statistics().components["bolt"].restarts == 1


@cancelling
async def test_N3_a_host_that_has_caught_a_cancellation_before_is_not_being_cancelled() -> None:
    """Its tasks die as elsewhere."""

    async def host() -> Running:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        asyncio.get_running_loop().call_later(0.5, cancel, "t/bolt[0]")
        return await run_to_end(slow_topology())

    task = asyncio.create_task(host())
    await asyncio.sleep(0)
    task.cancel()
    counts = (await task).statistics().components["bolt"]
    assert (counts.restarts, now() < 10) == (1, True)


@cancelling
async def test_N3_a_sink_that_is_cancelled_with_its_host_crashes_nothing() -> None:
    """Whichever of them hears of it first."""

    async def slow(letter: DeadLetter) -> None:
        await asyncio.sleep(1000)

    async def host() -> None:
        topology = Topology("t", max_attempts=1)
        topology.bolt("bolt", raise_value_error, topology.spout("spout", [1]).shuffle())
        async with topology.run(dead_letters=slow):
            await asyncio.sleep(1000)

    running = asyncio.create_task(host())
    await asyncio.sleep(0.5)
    cancel("spout[0] dead_letters")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@cancelling
async def test_N3_a_replay_that_is_refused_by_a_cancellation_is_heard_of() -> None:
    """Also while the source is awaited."""
    calls = count()

    def key(value: int) -> int:
        if next(calls) == 1:
            raise asyncio.CancelledError
        return value

    async def source() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(1000)

    topology = Topology("t")
    topology.bolt("bolt", raise_value_error, topology.spout("spout", source).fields(key))
    _, error = await crash(topology)
    assert (error.what, now() < 10) == ("replay", True)


@cancelling
async def test_N3_a_task_that_is_not_revived_for_long_keeps_no_exceptions() -> None:
    """They would keep alive the local variables of user code."""

    class IsDown(Exception):
        pass

    kept: list[weakref.ref[IsDown]] = []

    class Down(Slow):
        async def prepare(self, context: object) -> None:
            if now():
                error = IsDown()
                kept.append(weakref.ref(error))
                if len(kept) <= 200:
                    raise error

    topology = Topology("t", max_restarts=200, restart_delay_max=1.0)
    topology.bolt("down", Down, topology.spout("spout").shuffle())
    async with topology.run() as running:
        await asyncio.sleep(0.1)
        running.kill("down")
        await asyncio.sleep(400)
        gc.collect()
        assert len(kept) == 201
        assert sum(each() is not None for each in kept) < 10


def test_N3_the_end_of_the_loop_ends_a_run_that_nobody_leaves() -> None:
    """All tasks are cancelled then, as asyncio.run does, and none of them begins another life."""

    async def main() -> None:
        topology = Topology("t")
        topology.bolt("bolt", take_a_second, topology.spout("spout", range(4)).shuffle())
        await topology.run().__aenter__()
        await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 10))


async def yielding() -> AsyncIterator[int]:
    for value in range(3):
        yield value
        await asyncio.sleep(1)


@cancelling
@pytest.mark.parametrize("source", [yielding, Polled])
async def test_N3_a_host_that_is_cancelled_with_all_its_tasks_hears_of_that_alone(source: Any) -> None:
    """No task that is cancelled with it takes that for its death."""

    async def host() -> None:
        topology = Topology("t", max_restarts=0)
        topology.bolt("bolt", take_a_second, topology.spout("spout", source).shuffle())
        async with topology.run():
            await asyncio.sleep(100)

    running = asyncio.create_task(host())
    await asyncio.sleep(0.5)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@cancelling
async def test_N3_a_host_that_is_cancelled_and_stays_hears_of_the_tasks_that_were_cancelled_with_it() -> None:
    """It swallows its cancellation: then the topology crashes, rather than stand still."""

    async def host() -> Any:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.6)
        await asyncio.sleep(100)

    async def run() -> None:
        async with slow_topology().run():
            await host()

    running = asyncio.create_task(run())
    await asyncio.sleep(0.5)
    running.cancel()
    cancel("t/bolt[0]")
    with pytest.raises(TopologyCrashed, match=r"bolt\[0\]"):
        await running
