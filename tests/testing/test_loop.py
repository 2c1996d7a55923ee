"""The event loop with simulated time."""

from __future__ import annotations

import asyncio
import math
import pickle
import random
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import ParamSpec, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet import testing
from stormlet.errors import StormletError
from stormlet.testing import Deadlock, SimulatedLoop, run_simulated
from tests.helpers import now

T = TypeVar("T")
P = ParamSpec("P")

DAY = 86_400.0


class SlowWork(Future[T]):
    """Work whose thread rests after each callback that it makes."""

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        def report(work: Future[T]) -> None:
            fn(work)
            time.sleep(0.02)

        super().add_done_callback(report)


class SlowToReport(Executor):
    """Does its work in a thread each."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        work = SlowWork[T]()
        threading.Thread(target=lambda: work.set_result(fn(*args, **kwargs))).start()
        return work


class TestTime:
    """The clock jumps to whatever is due next."""

    def test_time_starts_at_zero_and_runs_on_sleep(self) -> None:
        """A sleep ends exactly when it should, and thirty days of it take no time."""

        async def main() -> tuple[float, float]:
            start = now()
            await asyncio.sleep(30 * DAY)
            return start, now()

        began = time.monotonic()
        assert run_simulated(main()) == (0.0, 30 * DAY)
        assert time.monotonic() - began < 60

    def test_work_takes_no_simulated_time(self) -> None:
        """Callbacks and yields to the loop happen in one instant."""

        async def main() -> float:
            for _ in range(100):
                await asyncio.sleep(0)
            return now()

        assert run_simulated(main()) == 0.0

    def test_sleeps_add_up_as_floats_do(self) -> None:
        """No timer adds an error of its own to the sum of many small sleeps."""

        async def main() -> float:
            for _ in range(1000):
                await asyncio.sleep(0.1)
            return now()

        expected = 0.0
        for _ in range(1000):
            expected += 0.1
        assert run_simulated(main()) == expected

    @given(
        st.lists(st.floats(min_value=0, max_value=1e12), min_size=1, max_size=30),
        st.floats(min_value=0, max_value=1e9),
    )
    def test_callbacks_see_the_very_time_they_were_scheduled_for(
        self, moments: list[float], start: float
    ) -> None:
        """Timers fire in order, each at exactly its moment, without any turn of the loop in between."""

        async def main() -> list[tuple[float, float]]:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(start)
            fired: list[tuple[float, float]] = []

            def fire(moment: float) -> None:
                fired.append((moment, loop.time()))

            for moment in moments:
                loop.call_at(moment, fire, moment)
            await asyncio.sleep(2e12)
            return fired

        fired = run_simulated(main())
        assert sorted(moment for moment, _ in fired) == sorted(moments)
        assert [seen for _, seen in fired] == [max(moment, start) for moment in sorted(moments)]

    def test_timers_closer_than_the_clocks_resolution_stay_apart(self) -> None:
        """Two timers one representable step apart fire at two different times, however late it is."""

        async def main(start: float) -> list[float]:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(start)
            seen: list[float] = []
            later = math.nextafter(start + 1, math.inf)
            loop.call_at(later, lambda: seen.append(loop.time()))
            loop.call_at(start + 1, lambda: seen.append(loop.time()))
            await asyncio.sleep(2)
            assert seen == [start + 1, later]
            return seen

        for start in (0.0, 0.1, 1e3, 1e9, 1e15):
            run_simulated(main(start))

    def test_the_first_instant_is_an_instant_too(self) -> None:
        """A timer an immeasurably short time after the start does not fire at the start."""

        async def main() -> list[float]:
            loop = asyncio.get_running_loop()
            seen: list[float] = []
            loop.call_at(1e-300, lambda: seen.append(loop.time()))
            for _ in range(3):
                await asyncio.sleep(0)
            assert seen == []
            await asyncio.sleep(1)
            return seen

        assert run_simulated(main()) == [1e-300]

    def test_the_loop_does_not_spin_towards_a_timer(self) -> None:
        """One jump per timer: the loop turns as often for a long wait as for a short one, also late in time."""

        async def main() -> None:
            for delay in (1e-9, 0.1, 1 / 3, 1e6 + 0.1, 1e9 + 0.7, 3 * DAY, 1e-3):
                await asyncio.sleep(delay)

        turns = 0

        class Counting(SimulatedLoop):
            def _run_once(self) -> None:
                nonlocal turns
                turns += 1
                super()._run_once()  # type: ignore[misc]

        with asyncio.Runner(loop_factory=Counting) as runner:
            runner.get_loop()
            runner.run(main())
            assert turns <= 7 * 3 + 3

    def test_a_cancelled_timer_does_not_hold_the_clock(self) -> None:
        """Time jumps past a timer that was cancelled."""

        async def main() -> float:
            asyncio.get_running_loop().call_later(5, pytest.fail).cancel()
            await asyncio.sleep(10)
            return now()

        assert run_simulated(main()) == 10.0

    def test_timeouts_work(self) -> None:
        """asyncio's own timeout fires at its simulated moment."""

        async def main() -> float:
            with suppress(TimeoutError):
                async with asyncio.timeout(30):
                    await asyncio.Event().wait()
            return now()

        assert run_simulated(main()) == 30.0

    def test_a_ready_socket_comes_before_the_next_timer(self) -> None:
        """What is already in a pipe is read at the present time, not after a jump."""

        async def main() -> tuple[bytes, float]:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                reader, writer = await asyncio.open_connection(sock=ours)
                alarm = asyncio.get_running_loop().call_later(DAY, pytest.fail)
                theirs.send(b"x")
                got = await reader.read(1)
                alarm.cancel()
                writer.close()
                await writer.wait_closed()
            return got, now()

        assert run_simulated(main()) == (b"x", 0.0)

    def test_debug_mode_works(self) -> None:
        """asyncio's debug mode, which times every callback, finds none slow."""

        async def main() -> float:
            await asyncio.sleep(1)
            return now()

        with asyncio.Runner(loop_factory=SimulatedLoop, debug=True) as runner:
            assert runner.run(main()) == 1.0


class TestFace:
    """What the runtime and the tests see of the loop."""

    def test_the_runtime_can_tell(self) -> None:
        """The class and its instances say that their time is simulated; asyncio's own do not."""
        assert SimulatedLoop.simulated_time is True
        assert getattr(asyncio.SelectorEventLoop, "simulated_time", False) is False

    def test_seed(self) -> None:
        """The seed is 0 unless given, and can be read from the running loop."""

        async def main() -> int:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, SimulatedLoop)
            return loop.seed

        assert run_simulated(main()) == 0
        assert run_simulated(main(), seed=7) == 7

    def test_errors_come_through(self) -> None:
        """What the coroutine raises is raised from the run."""

        async def main() -> None:
            raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            run_simulated(main())

    def test_names_of_the_package(self) -> None:
        """The package offers the loop's names without loading them early, and no others."""
        assert testing.SimulatedLoop is SimulatedLoop
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            getattr(testing, "nonsense")  # noqa: B009 - a type checker would refuse the plain form


class TestExecutors:
    """Work in threads takes real time, during which the clock stands still."""

    def test_time_stands_still_while_a_thread_works(self) -> None:
        """A timer that is due in an instant waits for a thread that takes longer than that."""

        async def main() -> tuple[float, list[str]]:
            events: list[str] = []
            asyncio.get_running_loop().call_later(0.001, events.append, "timer")
            await asyncio.to_thread(time.sleep, 0.05)
            events.append("thread")
            finished = now()
            await asyncio.sleep(1)
            return finished, events

        assert run_simulated(main()) == (0.0, ["thread", "timer"])

    def test_many_threads(self) -> None:
        """Results of threads are neither lost nor taken for a deadlock, whatever the order they end in."""

        async def main() -> list[int]:
            return await asyncio.gather(*(asyncio.to_thread(partial(pow, n, 2)) for n in range(300)))

        assert run_simulated(main()) == [n * n for n in range(300)]

    def test_the_result_comes_before_the_work_counts_as_done(self) -> None:
        """A thread that is slow to report its result is not overtaken by the end of its work."""

        async def main() -> bool:
            loop = asyncio.get_running_loop()
            gate = threading.Event()
            loop.call_soon(gate.set)
            return await loop.run_in_executor(SlowToReport(), gate.wait)

        assert run_simulated(main())

    def test_a_thread_nobody_waits_for_any_more_is_waited_for(self) -> None:
        """Cancelling the wait does not end the work, which may still call into the loop."""

        async def main() -> list[float]:
            loop = asyncio.get_running_loop()
            go, heard = threading.Event(), list[float]()

            def work() -> None:
                go.wait()
                loop.call_soon_threadsafe(lambda: heard.append(loop.time()))

            waiting = asyncio.ensure_future(asyncio.to_thread(work))
            await asyncio.sleep(0)
            waiting.cancel()
            loop.call_soon(go.set)
            await asyncio.sleep(DAY)
            return heard

        assert run_simulated(main()) == [0.0]

    def test_work_that_never_starts_is_not_waited_for(self) -> None:
        """Work that is cancelled while it queues for a thread does not hold the clock."""

        async def main() -> float:
            loop = asyncio.get_running_loop()
            gate = threading.Event()
            with ThreadPoolExecutor(1) as pool:
                busy = loop.run_in_executor(pool, gate.wait)
                queued = loop.run_in_executor(pool, started.append, "queued")
                queued.cancel()
                await asyncio.sleep(0)
                gate.set()
                await busy
            await asyncio.sleep(5)
            return now()

        started: list[str] = []
        assert (run_simulated(main()), started) == (5.0, [])

    def test_errors_of_threads_come_through(self) -> None:
        """A raising thread ends the wait for it."""

        async def main() -> float:
            with pytest.raises(ZeroDivisionError):
                await asyncio.to_thread(divmod, 1, 0)
            await asyncio.sleep(1)
            return now()

        assert run_simulated(main()) == 1.0

    def test_a_default_executor_of_the_users(self) -> None:
        """An executor that was set as the default is the one that is used."""

        async def main() -> str:
            pool = ThreadPoolExecutor(1, thread_name_prefix="mine")
            asyncio.get_running_loop().set_default_executor(pool)
            return await asyncio.to_thread(lambda: threading.current_thread().name)

        assert run_simulated(main()) == "mine_0"

    def test_a_closed_loop_takes_no_work(self) -> None:
        """Work for a closed loop is refused as asyncio refuses it."""
        loop = SimulatedLoop()
        loop.close()
        with pytest.raises(RuntimeError, match="Event loop is closed"):
            loop.run_in_executor(None, int)

    def test_work_that_outlives_the_loop(self, caplog: pytest.LogCaptureFixture) -> None:
        """Work that ends after its loop was closed does so in silence."""
        loop = SimulatedLoop()
        gate, pool = threading.Event(), ThreadPoolExecutor(1)
        loop.run_in_executor(pool, gate.wait).cancel()
        loop.close()
        gate.set()
        pool.shutdown()
        assert caplog.records == []

    def test_joining_the_threads_is_no_deadlock(self) -> None:
        """The end of a run waits in real time for the threads of the default executor."""
        done = threading.Event()

        def work() -> None:
            time.sleep(0.05)
            done.set()

        async def main() -> None:
            asyncio.get_running_loop().run_in_executor(None, work)

        run_simulated(main())
        assert done.is_set()


class TestDeadlock:
    """A run in which nothing can happen any more ends, and says who waits where."""

    def test_every_task_is_named_with_its_frames(self) -> None:
        """The message lists tasks in the order of their making, each with its calls, outermost first."""

        async def take(queue: asyncio.Queue[int]) -> int:
            return await queue.get()

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(take(asyncio.Queue()), name="second")
                group.create_task(asyncio.sleep(math.inf), name="first")
                await asyncio.sleep(3)

        with pytest.raises(Deadlock) as raised:
            run_simulated(main())
        assert raised.value.now == 3.0
        lines = str(raised.value).splitlines()
        assert lines[0] == "deadlock at simulated time 3 s: nothing is scheduled, and these tasks wait:"
        here = re.escape("TestDeadlock.test_every_task_is_named_with_its_frames.<locals>.")
        assert len(lines) == 4
        assert re.fullmatch(rf"  Task-\d+: {here}main \(test_loop\.py:\d+\) > TaskGroup.*", lines[1])
        assert re.fullmatch(
            rf"  second: {here}take \(test_loop\.py:\d+\) > Queue\.get \(queues\.py:\d+\)", lines[2]
        )
        assert re.fullmatch(r"  first: sleep \(tasks\.py:\d+\)", lines[3])
        assert raised.value.waiting == tuple(line.strip() for line in lines[1:])

    def test_the_line_is_where_the_task_waits(self) -> None:
        """The line number is that of the await, not of the function."""

        async def main() -> None:
            await asyncio.sleep(1)
            await asyncio.Event().wait()

        with pytest.raises(Deadlock) as raised:
            run_simulated(main())
        line = main.__code__.co_firstlineno + 2
        assert f"main (test_loop.py:{line}) > Event.wait (locks.py:" in raised.value.waiting[0]

    def test_generators_and_awaitables_are_followed(self) -> None:
        """Frames are found through generator-based awaitables too."""

        def park() -> Generator[object, None, None]:
            yield from asyncio.get_running_loop().create_future()

        class Waiting:
            def __await__(self) -> Generator[object, None, None]:
                yield from park()

        async def main() -> None:
            await Waiting()

        with pytest.raises(Deadlock) as raised:
            run_simulated(main())
        functions = re.findall(r"([\w.]+) \(test_loop\.py:\d+\)", raised.value.waiting[0])
        assert [name.rpartition(".")[2] for name in functions] == ["main", "__await__", "park"]

    def test_is_an_error_of_ours(self) -> None:
        """A deadlock can be caught as ours or as a RuntimeError, and survives pickling (xdist sends it)."""
        deadlock = Deadlock(3.0, ("a: f (x.py:1)",))
        assert isinstance(deadlock, StormletError)
        assert isinstance(deadlock, RuntimeError)
        assert str(pickle.loads(pickle.dumps(deadlock))) == str(deadlock)

    def test_sleeping_for_ever_is_not_being_scheduled(self) -> None:
        """A timer at infinity never fires, so it keeps nothing going."""
        with pytest.raises(Deadlock):
            run_simulated(asyncio.sleep(math.inf))

    def test_cleanup_still_runs(self) -> None:
        """The tasks of a deadlocked run are cancelled, and what they do then has a working clock."""
        cleaned: list[float] = []

        async def main() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(5)
                cleaned.append(now())

        with pytest.raises(Deadlock):
            run_simulated(main())
        assert cleaned == [5.0]

    def test_a_future_without_a_task(self) -> None:
        """A loop that is asked to wait for a bare future has no task to list."""
        loop = SimulatedLoop()
        with pytest.raises(Deadlock) as raised:
            loop.run_until_complete(loop.create_future())
        loop.close()
        assert raised.value.waiting == ()

    def test_an_open_socket_is_waited_for(self) -> None:
        """Where only the outside world is left, it is waited for in real time."""
        ours, theirs = socket.socketpair()

        async def main() -> bytes:
            reader, writer = await asyncio.open_connection(sock=ours)
            got = await reader.read(1)
            writer.close()
            await writer.wait_closed()
            return got

        with ours, theirs:
            late = threading.Timer(0.05, theirs.send, (b"x",))
            late.start()
            assert run_simulated(main()) == b"x"
            late.join()


def trace(program: Callable[[list[str]], Awaitable[None]], noise: int) -> list[str]:
    """What ``program`` notes in a run whose objects lie elsewhere in memory than in a run with other noise."""
    events: list[str] = []
    rng = random.Random(noise)
    ballast = [bytearray(rng.randrange(2000)) for _ in range(rng.randrange(2000))]

    async def main() -> None:
        await program(events)

    run_simulated(main())
    del ballast
    return events


async def abort_a_group(events: list[str]) -> None:
    async def member(name: str) -> None:
        try:
            await asyncio.sleep(DAY)
        finally:
            events.append(name)

    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            for number in range(60):
                bytearray(random.randrange(5000))
                group.create_task(member(f"member {number}"))
            await asyncio.sleep(1)
            raise LookupError


async def race(events: list[str]) -> None:
    async def numbers(delay: float) -> AsyncIterator[int]:
        for number in range(5):
            await asyncio.sleep(delay)
            yield number

    async def follow(name: str, delay: float) -> None:
        async for number in numbers(delay):
            events.append(f"{name} {number} {now()}")

    await asyncio.gather(*(follow(f"r{n}", 0.1 * (n % 3)) for n in range(10)))


class TestDeterminism:
    """Two runs of one program are the same run."""

    @pytest.mark.parametrize("program", [abort_a_group, race])
    def test_ten_runs_one_trace(self, program: Callable[[list[str]], Awaitable[None]]) -> None:
        """Ten runs amid different memory give one order of events, also where asyncio iterates a set."""
        first = trace(program, 0)
        assert len(first) >= 50
        assert [trace(program, noise) for noise in range(1, 10)] == [first] * 9

    def test_a_group_is_aborted_in_the_order_of_its_making(self) -> None:
        """Tasks hash by their number, so that a set of them has the order in which they were made."""
        assert trace(abort_a_group, 0) == [f"member {number}" for number in range(60)]

    def test_tasks_are_different_although_they_hash_by_number(self) -> None:
        """Tasks of two loops with one number are two tasks."""

        async def main() -> asyncio.Task[object]:
            task = asyncio.current_task()
            assert task is not None
            return task

        one, two = run_simulated(main()), run_simulated(main())
        assert hash(one) == hash(two)
        assert len({one, two}) == 2

    def test_names_and_contexts_reach_the_tasks(self) -> None:
        """Tasks have the names and contexts they are given, and asyncio's where they are given none."""
        variable = ContextVar("variable", default="outer")

        async def read() -> str:
            return variable.get()

        async def main() -> tuple[str, str, str]:
            inner = copy_context()
            inner.run(variable.set, "inner")
            named = asyncio.create_task(read(), name="mine", context=inner)
            unnamed = asyncio.create_task(read())
            await unnamed
            return named.get_name(), await named, unnamed.get_name().partition("-")[0]

        assert run_simulated(main()) == ("mine", "inner", "Task")
