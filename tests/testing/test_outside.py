"""The world outside of a simulated loop: the clock waits for what works there, and for nothing else."""

from __future__ import annotations

import asyncio
import http.server
import os
import re
import socketserver
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial

import pytest

from stormlet import Bolt, Collector, Topology, Tuple
from stormlet.testing import Deadlock, NotCompleted, SimulatedLoop, Simulation, complete, run_simulated
from stormlet.testing.outside import world
from tests.helpers import now
from tests.testing.outsiders import (
    CHILDREN,
    IDLE,
    SERVERS,
    TAKES,
    THREADS,
    Address,
    Call,
    Echo,
    HiddenWorker,
    Worker,
    brought,
    calls,
    connection,
    echoing_child,
    in_a_thread,
    unseen,
    works_for_ever,
)


@pytest.mark.parametrize(("kind", "call"), THREADS.items(), ids=THREADS)
def test_time_stands_still_while_a_thread_works(kind: str, call: Call) -> None:
    """However it is started, what it brings takes no simulated time."""
    if kind == "anyio":
        pytest.importorskip("anyio")
    result = complete(calls(call))
    assert (result["call"], result.acked, result.seconds) == ([1, 2, 3], [1, 2, 3], 0.0)


@pytest.mark.parametrize("call", CHILDREN.values(), ids=CHILDREN)
def test_time_stands_still_while_a_child_process_works(call: Call) -> None:
    """Its output and its end take no simulated time."""
    result = complete(calls(call))
    assert (result["call"], result.acked, result.seconds) == ([1, 2, 3], [1, 2, 3], 0.0)


def test_what_a_thread_brings_as_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have ended between the look at what has come and that at the threads."""
    pauses, threads = world.World.pauses, list[threading.Thread]()

    async def main() -> float:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def bring_and_end(self: world.World) -> Iterable[float]:
            if not threads:
                bring = partial(loop.call_soon_threadsafe, future.set_result, None)
                threads.append(threading.Thread(target=bring))
                threads[0].start()
                threads[0].join()
            return pauses(self)

        monkeypatch.setattr(world.World, "pauses", bring_and_end)
        async with asyncio.timeout(0.01):
            await future
        return now()

    assert run_simulated(main()) == 0.0


def test_a_worker_is_told_again_and_again() -> None:
    """What was at rest is at work from the moment in which it is told what to do."""

    async def main() -> float:
        workers = (Worker().queue.put, HiddenWorker().put, ThreadPoolExecutor(1).submit)
        for work in workers * 100:
            loop = asyncio.get_running_loop()
            alarm = loop.call_later(1, pytest.fail)
            future: asyncio.Future[None] = loop.create_future()
            work(partial(loop.call_soon_threadsafe, future.set_result, None))
            await future
            alarm.cancel()
        return now()

    assert run_simulated(main()) == 0.0


def test_a_bolt_that_acks_from_a_thread() -> None:
    """Nothing awaits it, and yet no time passes before it has acked."""

    class Acks(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            threading.Thread(target=lambda: out.ack_threadsafe(slowly_given(tup))).start()

    def slowly_given(tup: Tuple[int]) -> Tuple[int]:
        time.sleep(TAKES)
        return tup

    topology = Topology("acks", message_timeout=0.01, max_attempts=1)
    topology.bolt("acks", Acks, topology.spout("values", [1, 2, 3]).shuffle())
    result = complete(topology)
    assert (result.acked, result.seconds) == ([1, 2, 3], 0.0)


@pytest.mark.simulated_time
async def test_settled_waits_for_the_world_outside(sim: Simulation) -> None:
    """As for work in an executor."""
    call = asyncio.ensure_future(THREADS["timer"](7))
    await sim.settled()
    assert (call.done(), sim.now) == (True, 0.0)


# --- servers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", SERVERS)
def test_time_stands_still_while_a_server_elsewhere_owes_an_answer(
    server: Callable[[], AbstractContextManager[Address]],
) -> None:
    """Also between the parts of that."""
    with server() as address:

        async def call(value: int) -> int:
            async with connection(address) as ask:
                return await ask(value)

        result = complete(calls(call))
    assert (result["call"], result.acked, result.seconds) == ([11, 12, 13], [1, 2, 3], 0.0)


@pytest.mark.parametrize("server", SERVERS)
def test_a_connection_that_is_kept(
    server: Callable[[], AbstractContextManager[Address]],
) -> None:
    """It holds the clock after each question, and not in between."""

    async def main(address: Address) -> list[int]:
        answers: list[int] = []
        async with connection(address) as ask:
            for value in (1, 2, 3):
                async with asyncio.timeout(0.01):
                    answers.append(await ask(value))
                await asyncio.sleep(60)
        return answers

    with server() as address:
        assert run_simulated(main(address)) == [11, 12, 13]


def test_a_server_that_speaks_first() -> None:
    """A connection waits for an answer from its beginning."""

    class Greets(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            time.sleep(TAKES)
            self.wfile.write(b"hello\n")

    async def main(host: str, port: int) -> float:
        reader, writer = await asyncio.open_connection(host, port)
        async with asyncio.timeout(0.01):
            assert await reader.readline() == b"hello\n"
        writer.close()
        return now()

    with in_a_thread(Greets) as address:
        assert run_simulated(main(*address)) == 0.0


def test_an_http_client() -> None:
    """With timeouts of its own, and a server in a thread."""
    httpx = pytest.importorskip("httpx")

    class Hello(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            time.sleep(TAKES)
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    async def main(host: str, port: int) -> tuple[str, float]:
        async with httpx.AsyncClient(timeout=0.01) as client:
            for _ in range(2):
                answer = await client.get(f"http://{host}:{port}/")
        return answer.text, now()

    with in_a_thread(Hello) as address:
        assert run_simulated(main(*address)) == ("hello", 0.0)


def test_a_server_and_a_client_of_one_loop() -> None:
    """What takes simulated time between them takes no real time."""

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            await asyncio.sleep(10)
            writer.write(line)
        writer.close()

    async def main() -> list[float]:
        server = await asyncio.start_server(slow, "127.0.0.1", 0)
        times: list[float] = []
        async with server, connection(server.sockets[0].getsockname()) as ask:
            for value in (1, 2):
                assert await ask(value) == value
                times.append(now())
                await asyncio.sleep(3600)
        return times

    assert run_simulated(main()) == [10.0, 3620.0]


# --- what is there, and holds nothing -------------------------------------------------------------------------------


@pytest.mark.parametrize("there", IDLE)
def test_a_thread_that_waits_to_be_told_holds_nothing(
    there: Callable[[], AbstractContextManager[None]],
) -> None:
    """A hundred hours pass beside it."""

    async def main() -> float:
        with there():
            for _ in range(100):
                await asyncio.sleep(3600)
        return now()

    assert run_simulated(main()) == 360_000.0


def test_an_idle_worker_of_anyio_holds_nothing() -> None:
    """Its thread stays for the next piece of work."""
    to_thread = pytest.importorskip("anyio.to_thread")

    async def main() -> int:
        await to_thread.run_sync(int)
        await asyncio.sleep(5)
        await to_thread.run_sync(int)
        await asyncio.sleep(5)
        return sum("AnyIO" in each.name for each in threading.enumerate())

    assert run_simulated(main()) == 1


def test_a_thread_from_before_holds_nothing() -> None:
    """What was at work when the loop was made works for somebody else."""
    with works_for_ever():
        assert run_simulated(asyncio.sleep(3600, "passed")) == "passed"


def test_a_child_that_waits_to_be_told_holds_nothing() -> None:
    """One that answers what it reads is waited for after each question, and not in between."""

    async def main() -> list[int]:
        answers: list[int] = []
        async with echoing_child() as ask:
            for value in (1, 2):
                async with asyncio.timeout(0.01):
                    answers.append(await ask(value))
                await asyncio.sleep(3600)
        return answers

    assert run_simulated(main()) == [1, 2]


# --- what does not come ---------------------------------------------------------------------------------------------


def test_a_thread_that_never_comes_back_is_named(impatient: None) -> None:
    """By name and place, in a warning that says how to hold the clock, and in what fails when time goes on."""
    named = (
        r"simulated time went on at 0 s without thread 'Thread-\d+ \(work\)', at work in work "
        r"\(outsiders\.py:\d+\), after 0\.3 s of real time; .*with sim\.held\(\).*SimulatedLoop\.patience"
    )

    async def call(value: int) -> int:
        with works_for_ever():
            return await asyncio.get_running_loop().create_future()

    with pytest.warns(RuntimeWarning, match=named), pytest.raises(NotCompleted) as raised:
        complete(calls(call), {"values": [1]})
    assert re.match(named, raised.value.__notes__[0])


@pytest.mark.parametrize("error", [TimeoutError, Deadlock])
def test_what_fails_then_says_so(error: type[Exception], impatient: None) -> None:
    """A timeout that is only due to that, or a deadlock, has it as a note."""

    async def main() -> None:
        with works_for_ever():
            async with asyncio.timeout(60 if error is TimeoutError else None):
                await asyncio.Event().wait()

    with pytest.warns(RuntimeWarning), pytest.raises(error) as raised:
        run_simulated(main())
    (note,) = raised.value.__notes__
    assert note.startswith("simulated time went on at 0 s without thread 'Thread-")


def test_a_server_that_is_silent(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address is told, once; when it has answered after all, the clock waits for it again."""
    gate = threading.Event()

    class Waits(Echo):
        def handle(self) -> None:
            gate.wait()
            super().handle()

    async def main(address: Address) -> None:
        async with connection(address) as ask:
            late = asyncio.ensure_future(ask(1))
            for _ in range(10):
                await asyncio.sleep(60)
            assert not late.done()
            monkeypatch.undo()
            gate.set()
            assert await late == 11
            async with asyncio.timeout(0.01):
                assert await ask(2) == 12

    with in_a_thread(Waits) as address, pytest.warns(RuntimeWarning) as warned:
        run_simulated(main(address))
    (warning,) = warned
    assert f"at 0 s without an answer from 127.0.0.1:{address[1]}, after 0.3 s of" in str(warning.message)


def test_a_child_that_does_not_end(impatient: None) -> None:
    """Its process id is told, once."""

    async def main() -> int:
        child = await asyncio.create_subprocess_exec("sleep", "60")
        for _ in range(10):
            await asyncio.sleep(60)
        child.kill()
        await child.wait()
        return child.pid

    with pytest.warns(RuntimeWarning, match=r"without child process \d+, after 0\.3 s") as warned:
        pid = run_simulated(main())
    (warning,) = warned
    assert f"child process {pid}," in str(warning.message)


TRAPS_FOR_LONG = "trap 'sleep 0.2; exit 3' TERM; echo ready; while :; do sleep 0.01; done"


def test_a_child_that_takes_its_time_to_end(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a signal the clock waits for one that it had given up."""

    async def main() -> int:
        reading, writing = os.pipe()  # not in the loop, which would wait for what comes there
        child = await asyncio.create_subprocess_exec("sh", "-c", TRAPS_FOR_LONG, stdout=writing)
        os.close(writing)
        assert os.read(reading, 5) == b"ready"
        os.close(reading)
        for _ in range(10):
            await asyncio.sleep(60)
        monkeypatch.undo()
        child.terminate()
        return await child.wait()

    with pytest.warns(RuntimeWarning, match="without child process"):
        assert run_simulated(main()) == 3


def test_what_comes_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would never let time pass: after six times its patience at one moment the clock waits for nothing more."""
    monkeypatch.setattr(world, "MOMENT", 6 * TAKES / SimulatedLoop.patience)

    async def main() -> None:
        loop, stop = asyncio.get_running_loop(), threading.Event()

        def again() -> None:
            loop.call_soon_threadsafe(int)
            if not stop.is_set():
                threading.Timer(TAKES / 10, again).start()

        again()
        for _ in range(100):
            await asyncio.sleep(60)
        stop.set()
        await asyncio.to_thread(time.sleep, TAKES)

    with pytest.warns(
        RuntimeWarning, match=r"at 0 s without thread .* at that moment, and waits no m"
    ) as warned:
        run_simulated(main())
    assert len(warned) == 1


# --- a clock that is held -------------------------------------------------------------------------------------------


def test_time_stands_still_while_the_clock_is_held() -> None:
    """For what nobody can see; outside of the block it passes."""

    async def main() -> tuple[list[str], float]:
        events: list[str] = []
        asyncio.get_running_loop().call_later(1, events.append, "timer")
        with Simulation().held():
            await brought(unseen)(1)
        events.append("brought")
        await asyncio.sleep(2)
        return events, now()

    assert run_simulated(main()) == (["brought", "timer"], 2.0)


@pytest.mark.simulated_time
async def test_settled_waits_for_whoever_holds_the_clock(sim: Simulation) -> None:
    """A test sees what a bolt has done that held it."""

    async def hold(value: int) -> int:
        with Simulation().held():
            return await brought(unseen)(value)

    holding = asyncio.ensure_future(hold(7))
    await sim.settled()
    assert (holding.done(), holding.result(), sim.now) == (True, 7, 0.0)


@pytest.mark.simulated_time
async def test_who_holds_the_clock_cannot_wait_for_it(sim: Simulation) -> None:
    """It would be for ever; after the block it can."""
    with sim.held():
        for wait in (sim.settled, partial(sim.advance, seconds=1)):
            with pytest.raises(
                RuntimeError, match=r"waits for time to pass, which it does not in the block of sim\.held"
            ):
                await wait()
    await sim.advance(seconds=1)
    assert sim.now == 1.0


@pytest.mark.simulated_time
async def test_who_holds_the_clock_cannot_sleep(sim: Simulation) -> None:
    """That would be for ever, too, also below other calls; somebody else sleeps until it is released."""

    async def pause() -> None:
        await asyncio.sleep(1)

    other = asyncio.ensure_future(pause())
    with sim.held():
        for wait in (partial(asyncio.sleep, 1), pause):
            with pytest.raises(
                RuntimeError, match=r"^asyncio\.sleep waits for time to pass, which it does not in"
            ):
                await wait()
        await brought(unseen)(1)
    assert not other.done()
    await other
    assert sim.now == 1.0


@pytest.mark.simulated_time
async def test_who_holds_the_clock_may_set_limits(sim: Simulation) -> None:
    """A limit of time is no sleep, and passes only after the block."""
    with sim.held():
        async with asyncio.timeout(1):
            assert await asyncio.wait_for(brought(unseen)(7), 1) == 7
    assert sim.now == 0.0


def test_the_clock_is_released_by_an_exception() -> None:
    """And by a cancellation."""

    async def main() -> float:
        for error in (LookupError, asyncio.CancelledError):
            with pytest.raises(error), Simulation().held():
                raise error
        await asyncio.sleep(5)
        return now()

    assert run_simulated(main()) == 5.0
