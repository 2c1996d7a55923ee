"""The page "Testing your topology": threads, processes and servers, for which simulated time stands still."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial

import pytest

from stormlet.testing import NotCompleted, SimulatedLoop, Simulation, complete, run_simulated
from tests.helpers import now
from tests.testing.outsiders import (
    CHILDREN,
    IDLE,
    SERVERS,
    TAKES,
    THREADS,
    Address,
    Call,
    brought,
    by_anyio,
    calls,
    connection,
    echoing_child,
    slowly,
    unseen,
    works_for_ever,
)


def assert_takes_no_time(call: Call) -> None:
    """Of the simulated kind."""
    result = complete(calls(call))
    assert (result.acked, result.seconds) == ([1, 2, 3], 0.0)


def test_what_is_outside() -> None:
    """Bolts may call what is outside of the loop. That takes real time, in which simulated time stands still:"""
    began = time.monotonic()
    assert_takes_no_time(THREADS["thread"])
    assert time.monotonic() - began >= 3 * TAKES


def test_executors() -> None:
    """work in an executor, as by `asyncio.to_thread`: until it is done"""
    assert_takes_no_time(partial(asyncio.to_thread, slowly))


def test_threads() -> None:
    """another thread, of anyio or your own: while it works, but not while it waits for an event, a queue or a
    connection
    """

    async def an_hour_beside(there: Callable[[], AbstractContextManager[None]]) -> None:
        with there():
            await asyncio.sleep(3600)

    for call in (by_anyio, THREADS["thread"], THREADS["worker"]):
        assert_takes_no_time(call)
    for there in IDLE:  # what the clock waits for in vain is an error here
        run_simulated(an_hour_beside(there))


def test_timers() -> None:
    """a `threading.Timer`: until it has run"""
    assert_takes_no_time(THREADS["timer"])


def test_children() -> None:
    """a process started by `asyncio.create_subprocess_exec` or `..._shell`: until it ends, or has answered what it
    reads from a pipe
    """

    async def ask_twice() -> None:
        async with echoing_child() as ask:
            await at_once(ask(1))
            await asyncio.sleep(3600)
            await at_once(ask(2))

    for call in CHILDREN.values():
        assert_takes_no_time(call)
    run_simulated(ask_twice())


async def at_once(answer: Awaitable[object]) -> None:
    """It takes no simulated time."""
    async with asyncio.timeout(0.01):
        await answer


def test_connections() -> None:
    """a TCP or named Unix connection to a server elsewhere: from its beginning, and when something was sent, until the
    answer is there
    """

    async def ask_twice(address: Address) -> None:
        async with connection(address) as ask:
            await at_once(ask(1))
            await asyncio.sleep(3600)
            await at_once(ask(2))

    for server in SERVERS:
        with server() as address:
            run_simulated(ask_twice(address))


def test_what_holds_nothing() -> None:
    """Threads that were started before the test began, servers in the loop itself and connections at rest hold
    nothing.
    """

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            await asyncio.sleep(60)
            writer.write(line)
        writer.close()

    async def serve() -> float:
        server = await asyncio.start_server(served, "127.0.0.1", 0)
        async with server, connection(server.sockets[0].getsockname()) as ask:
            await ask(1)
            await asyncio.sleep(3600)
        return now()

    with works_for_ever():
        assert run_simulated(serve()) == 3660.0


def test_how_long_the_clock_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread at work, a process or a server that gives no sign of life for ten seconds,
    `stormlet.testing.SimulatedLoop.patience`, is waited for no longer: time goes on, a warning names it, and so does
    the error of what fails for it.
    """

    async def never(_: int) -> None:
        with works_for_ever():
            await asyncio.Event().wait()

    assert SimulatedLoop.patience == 10.0
    monkeypatch.setattr(SimulatedLoop, "patience", TAKES)
    without = (
        r"simulated time went on at 0 s without thread 'Thread-\d+ \(work\)', at work in work \(outsiders"
    )
    with pytest.warns(RuntimeWarning, match=without), pytest.raises(NotCompleted) as raised:
        complete(calls(never), {"values": [1]})
    assert re.match(without, raised.value.__notes__[0])


@pytest.mark.simulated_time
async def test_what_cannot_be_seen(sim: Simulation) -> None:
    """What cannot be seen, such as datagrams or a thread that sleeps by `Event.wait`, is for the test to wait for: in
    `with sim.held():` time stands still.
    """
    call = brought(unseen)
    with pytest.raises(TimeoutError):
        await at_once(call(1))
    with sim.held():
        await at_once(call(2))


def test_who_holds_the_clock_in_a_bolt() -> None:
    """In a bolt, `Simulation()` is what `sim` is."""

    async def call(value: int) -> int:
        with Simulation().held():
            return await brought(unseen)(value)

    assert_takes_no_time(call)
