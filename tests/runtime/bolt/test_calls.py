"""Concurrent calls share a few asyncio tasks, and find nothing of each other there (law B3)."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextvars import ContextVar
from typing import Any

import pytest

from stormlet import BasicBolt, Collector, Running, Stream, TaskContext, Topology, Tuple
from stormlet.testing import Simulation
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time

variable: ContextVar[object] = ContextVar("variable", default="nothing")


def current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def run(logic: Any, size: int = 20, *, concurrency: int = 2, **options: Any) -> Running:
    """Run a bolt with as many messages, to the end."""
    topology = Topology("calls", max_attempts=1)
    topology.bolt(
        "call", logic, topology.spout("numbers", range(size)).shuffle(), concurrency=concurrency, **options
    )
    async with asyncio.timeout(60):
        return await run_to_end(topology)


async def test_calls_share_coroutines() -> None:
    """A hundred calls, three at a time, are made in three asyncio tasks, which bear the name of their task."""
    made_in = Counter[asyncio.Task[Any]]()

    async def call(number: int) -> None:
        before = current()
        await asyncio.sleep(0.1)
        assert current() is before
        made_in[before] += 1

    await run(call, 99, concurrency=3)
    assert sorted(made_in.values()) == [33, 33, 33]
    assert {task.get_name() for task in made_in} == {"call[0] execute"}


async def test_concurrency_may_be_any_number() -> None:
    """Also one that an integer of C has no room for, where the runtime is compiled."""
    running = await run(asyncio.sleep, 5, concurrency=10**30)
    assert running.statistics().components["numbers"].acked == 5


async def test_no_coroutine_waits_for_calls(sim: Simulation) -> None:
    """When all calls are over, the asyncio tasks that made them are too."""
    topology = Topology("calls")
    fed: Stream[int] = topology.spout("fed", outputs=int)
    topology.bolt("call", lambda number: asyncio.sleep(1), fed.shuffle(), concurrency=5)

    def callers() -> int:
        return sum(task.get_name() == "call[0] execute" for task in asyncio.all_tasks())

    async with topology.run() as running:
        for number in range(9):
            await running.emit(fed, number)
        await sim.advance(seconds=0.5)
        assert callers() == 5
        await sim.advance(seconds=2)
        assert callers() == 0


@pytest.mark.parametrize("turns", range(8))
async def test_no_input_waits_for_a_call_while_another_may_begin(sim: Simulation, turns: int) -> None:
    """Also not one that comes so many turns of the loop after the first, when that one's call is about to begin."""
    begun = list[int]()

    async def call(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(100)

    topology = Topology("calls", message_timeout=None, drain_timeout=None)
    fed: Stream[int] = topology.spout("fed", outputs=int)
    topology.bolt("call", call, fed.shuffle(), concurrency=5)
    async with topology.run() as running:
        emits = list[asyncio.Task[Any]]()
        for number in range(3):
            emits.append(asyncio.create_task(running.emit(fed, number)))
            for _ in range(turns):
                await asyncio.sleep(0)
        await sim.advance(seconds=1)
        assert begun == [0, 1, 2]
        await asyncio.gather(*emits)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks begin eagerly from Python 3.12 on")
async def test_calls_of_a_loop_whose_tasks_begin_eagerly() -> None:
    """A caller has made its first call before those who start it go on."""
    running, most = 0, 0

    async def call(number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009 - it is not known to older versions
    try:
        await run(call, 300, concurrency=5)
    finally:
        loop.set_task_factory(before)
    assert most == 5


async def test_a_call_whose_output_waits_for_room_holds_up_no_other_one(sim: Simulation) -> None:
    """Its coroutine takes no input then, so another one does (law B3, B6)."""
    called, gate = list[int](), asyncio.Event()

    async def call(number: int) -> int:
        called.append(number)
        return number

    topology = Topology("calls")
    fed: Stream[int] = topology.spout("fed", outputs=int)
    numbers = topology.bolt("call", call, fed.shuffle(), concurrency=2)
    topology.bolt("slow", lambda number: gate.wait(), numbers.shuffle(), queue_capacity=1)
    async with topology.run() as running:
        for number in (1, 2, 3):  # one in hand of the slow bolt, one that fills its queue, one more
            await running.emit(fed, number)
            await sim.advance(seconds=1)
        assert called == [1, 2, 3]
        gate.set()


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_call_finds_no_context_variables_of_another_one(asynchronous: bool) -> None:
    """What one sets, the next one does not see."""
    found: list[object] = []

    def call(number: int) -> None:
        found.append(variable.get())
        variable.set(number)

    async def call_later(number: int) -> None:
        await asyncio.sleep(0.1)
        call(number)

    await run(call_later if asynchronous else call)
    assert found == ["nothing"] * 20


async def test_an_equal_value_is_not_the_same() -> None:
    """A call that replaces a list by an equal one has changed the variable."""
    given: list[int] = []

    class Replace(BasicBolt[int, None]):
        def prepare(self, context: TaskContext) -> None:
            variable.set(given)

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            assert variable.get() is given
            variable.set([])
            await asyncio.sleep(0)

    running = await run(Replace)
    assert running.statistics().components["call"].failed == 0


async def test_calls_find_what_their_bolt_has_set(sim: Simulation) -> None:
    """The variables that ``prepare`` and ``tick`` set are those that each later call begins with."""
    found: list[object] = []

    class Sets(BasicBolt[int, None]):
        def prepare(self, context: TaskContext) -> None:
            variable.set("prepared")

        def tick(self, out: Collector[None]) -> None:
            variable.set(now())

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            await asyncio.sleep(0.4)
            found.append(variable.get())

    await run(Sets, 8, tick=1.0)
    assert found == ["prepared"] * 6 + [1.0] * 2


async def test_a_call_finds_no_cancellation_of_another_one() -> None:
    """One that cancels itself and swallows that is over when it returns; the next ones may use timeouts."""

    async def call(number: int) -> None:
        assert current().cancelling() == 0
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await asyncio.sleep(1)
        current().cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)

    running = await run(call)
    assert running.statistics().components["numbers"].acked == 20


async def test_a_call_that_cancels_itself_and_returns_is_over() -> None:
    """A cancellation that nothing awaits any more reaches no other call."""

    async def call(number: int) -> None:
        await asyncio.sleep(0)
        current().cancel()

    running = await run(call)
    assert running.statistics().components["numbers"].acked == 20


async def test_a_cancelled_call_leaves_its_place_to_another_one() -> None:
    """Of ten calls, two at a time, two are cancelled by others: their inputs fail, and there are still two at a
    time."""
    calls: dict[int, asyncio.Task[Any]] = {}
    most = 0

    async def call(number: int) -> None:
        nonlocal most
        calls[number] = current()
        most = max(most, len(calls)) if number > 4 else 0
        try:
            if number in (1, 4):
                asyncio.get_running_loop().call_later(0.5, calls[number].cancel)
            await asyncio.sleep(1)
        finally:
            del calls[number]

    running = await run(call, 10)
    assert [letter.value for letter in running.dead_letters] == [1, 4]
    assert running.statistics().components["numbers"].acked == 8
    assert most == 2
    assert now() < 6


async def test_no_call_begins_while_a_tick_is_under_way() -> None:
    """Those that run go on (B5)."""
    began: list[float] = []

    class Ticks(BasicBolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            began.append(now())
            await asyncio.sleep(0.3 + tup.value / 100)

        async def tick(self, out: Collector[None]) -> None:
            if now() == 1:
                await asyncio.sleep(5)

    await run(Ticks, 30, tick=1.0)
    assert not [moment for moment in began if 1 < moment < 6]
    assert [moment for moment in began if moment < 1]
    assert [moment for moment in began if moment >= 6]


async def test_a_stop_iteration_of_a_call_is_its_exception() -> None:
    """It has the task die like any other, and the input is lost, where errors restart it (B4)."""

    def call(number: int) -> None:
        if number == 1:
            raise StopIteration

    running = await run(call, 4, on_error="restart")
    statistics = running.statistics().components
    assert (statistics["call"].restarts, statistics["numbers"].acked) == (1, 3)


async def test_what_is_no_coroutine_is_awaited() -> None:
    """A future, and an object with ``__await__`` that gives an iterator of values."""
    seen: list[object] = []

    class Later:
        def __await__(self) -> Any:
            yield from asyncio.sleep(1, ["a", "b"]).__await__()
            return iter(["a", "b"])

    def call(number: int) -> Any:
        return Later() if number else asyncio.ensure_future(asyncio.sleep(1, "future"))

    topology = Topology("calls")
    results = topology.bolt("call", call, topology.spout("numbers", range(2)).shuffle(), concurrency=2)
    topology.bolt("see", seen.append, results.shuffle())
    await run_to_end(topology)
    assert sorted(map(str, seen)) == ["a", "b", "future"]


async def test_its_asyncio_task_shows_the_call(sim: Simulation) -> None:
    """Its stack, for those who print all tasks, is that of the user's coroutine."""

    async def hang(number: int) -> None:
        await asyncio.sleep(1000)

    topology = Topology("calls", drain_timeout=0)
    fed: Stream[int] = topology.spout("fed", outputs=int)
    topology.bolt("call", hang, fed.shuffle(), concurrency=2)
    async with topology.run() as running:
        await running.emit(fed, 1)
        await sim.advance(seconds=1)
        (call,) = (task for task in asyncio.all_tasks() if task.get_name() == "call[0] execute")
        assert [frame.f_code.co_name for frame in call.get_stack()] == ["hang"]
        assert "hang" in repr(call)


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_call_that_awaits_nothing_needs_no_turn_of_the_loop(concurrency: int) -> None:
    """Coroutines that return at once are executed as functions are: several in one turn, until the slice ends (F2)."""
    turns = Counter[int]()
    turn = 0

    async def call(number: int) -> None:
        turns[turn] += 1

    def count() -> None:
        nonlocal turn
        turn += 1
        if not ended.done():
            asyncio.get_running_loop().call_soon(count)

    ended = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(count)
    await run(call, 500, concurrency=concurrency)
    ended.set_result(None)
    assert sum(turns.values()) == 500
    assert len(turns) < 250
    assert max(turns.values()) < 100
