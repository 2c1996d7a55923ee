"""Who works outside of a simulated loop, or only lives there."""

from __future__ import annotations

import asyncio
import inspect
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from queue import Queue
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest

from stormlet import Topology
from stormlet.testing import SimulatedLoop

Call: TypeAlias = Callable[[int], Awaitable[int]]
Address: TypeAlias = tuple[str, int] | str

TAKES = 0.1
"""Real seconds that the world outside takes for an answer."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the clock waits for in vain it gives up soon, with a warning; for tests in which nothing is to come, as a
    machine may well stand still for longer. A warning is an error in our tests."""
    monkeypatch.setattr(SimulatedLoop, "patience", 3 * TAKES)


def slowly(value: int) -> int:
    time.sleep(TAKES)
    return value


# --- who brings a value from outside --------------------------------------------------------------------------------


def brought(start: Callable[[Callable[[], None]], object]) -> Call:
    """A call that has something started, which brings the value by ``call_soon_threadsafe``."""

    async def call(value: int) -> int:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()

        def bring() -> None:
            loop.call_soon_threadsafe(future.set_result, slowly(value))

        start(bring)
        return await future

    return call


class Worker(threading.Thread):
    """One with a queue of its own, as anyio's are."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.queue: Queue[Callable[[], None] | None] = Queue()
        self.start()

    def run(self) -> None:
        while (work := self.queue.get()) is not None:
            work()
            self.queue.task_done()


class HiddenWorker:
    """One whose queue nobody sees."""

    def __init__(self) -> None:
        queue: Queue[Callable[[], None] | None] = Queue()
        self.put = queue.put
        threading.Thread(target=lambda: [work() for work in iter(queue.get, None)], daemon=True).start()


async def by_anyio(value: int) -> int:
    to_thread = pytest.importorskip("anyio.to_thread")
    return int(await to_thread.run_sync(slowly, value))


async def by_own_pool(value: int) -> int:
    with ThreadPoolExecutor(1) as pool:
        return await asyncio.wrap_future(pool.submit(slowly, value))


CODE = f"import time; time.sleep({TAKES}); print("


async def by_subprocess(value: int) -> int:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", f"{CODE}{value})", stdout=pipe)
    output, _ = await child.communicate()
    return int(output)


async def by_shell(value: int) -> int:
    child = await asyncio.create_subprocess_shell(f"sleep {TAKES}; exit {value}")
    return await child.wait()


@asynccontextmanager
async def echoing_child() -> AsyncIterator[Call]:
    """What asks a child process that answers with what it reads."""

    async def ask(value: int) -> int:
        stdin.write(f"{value}\n".encode())
        return int(await stdout.readline())

    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec("cat", stdin=pipe, stdout=pipe)
    stdin, stdout = child.stdin, child.stdout
    assert stdin is not None
    assert stdout is not None
    yield ask
    stdin.close()
    await child.wait()


THREADS: dict[str, Call] = {
    "timer": brought(lambda bring: threading.Timer(TAKES, bring).start()),
    "thread": brought(lambda bring: threading.Thread(target=bring).start()),
    "daemon": brought(lambda bring: threading.Thread(target=bring, daemon=True).start()),
    "worker": brought(lambda bring: Worker().queue.put(bring)),
    "hidden worker": brought(lambda bring: HiddenWorker().put(bring)),
    "anyio": by_anyio,
    "pool": by_own_pool,
}
CHILDREN: dict[str, Call] = {"subprocess": by_subprocess, "shell": by_shell}


def unseen(bring: Callable[[], None]) -> None:
    """Have it called by a thread that seems to wait to be told: a loop that does not see it may be over by then."""

    def wait() -> None:
        threading.Event().wait(TAKES)
        with suppress(RuntimeError):
            bring()

    threading.Thread(target=wait).start()


def calls(call: Call) -> Topology:
    """A bolt that awaits this, with no time to lose."""
    topology = Topology("calls", message_timeout=0.01, max_attempts=1)
    topology.bolt("call", call, topology.spout("values", [1, 2, 3]).shuffle())
    return topology


# --- servers --------------------------------------------------------------------------------------------------------


class Echo(socketserver.StreamRequestHandler):
    """Answers each line slowly, in two parts."""

    def handle(self) -> None:
        for line in self.rfile:
            time.sleep(TAKES)
            self.wfile.write(b"1")
            time.sleep(TAKES / 4)
            self.wfile.write(line)


class Server(socketserver.ThreadingTCPServer):
    """Serves on a free port of this machine."""

    daemon_threads = True


class UnixServer(socketserver.ThreadingUnixStreamServer):
    """The same at a path."""

    daemon_threads = True


@contextmanager
def in_a_thread(handler: type[socketserver.StreamRequestHandler] = Echo) -> Iterator[Address]:
    server = Server(("127.0.0.1", 0), handler)
    with server, thread(lambda: server.serve_forever(0.01), server.shutdown):
        yield server.server_address


@contextmanager
def in_a_loop_of_its_own() -> Iterator[Address]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            await asyncio.sleep(TAKES)
            writer.write(b"1")
            await asyncio.sleep(TAKES / 4)
            writer.write(line)
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            address.put(server.sockets[0].getsockname())
            await asyncio.to_thread(done.wait)

    address, done = Queue[Address](), threading.Event()
    with thread(lambda: asyncio.run(serve()), done.set):
        yield address.get()


@contextmanager
def in_another_process() -> Iterator[Address]:
    classes = "".join(map(inspect.getsource, (Echo, Server)))
    code = f"""
import socketserver, time
TAKES = {TAKES}
{classes}
server = Server(("127.0.0.1", 0), Echo)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield "127.0.0.1", int(child.stdout.readline())
        finally:
            child.kill()


@contextmanager
def at_a_path() -> Iterator[Address]:
    with TemporaryDirectory() as folder:
        server = UnixServer(f"{folder}/socket", Echo)
        with server, thread(lambda: server.serve_forever(0.01), server.shutdown):
            yield f"{folder}/socket"


SERVERS = [in_a_thread, in_a_loop_of_its_own, in_another_process, at_a_path]


@asynccontextmanager
async def connection(address: Address) -> AsyncIterator[Call]:
    """What asks over one connection; an answer is 10 more than the question."""

    async def ask(value: int) -> int:
        writer.write(f"{value}\n".encode())
        return int(await reader.readline())

    if isinstance(address, str):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        reader, writer = await asyncio.open_connection(*address)
    yield ask
    writer.close()
    await writer.wait_closed()


# --- who only lives there -------------------------------------------------------------------------------------------


@contextmanager
def thread(target: Callable[[], object], end: Callable[[], object]) -> Iterator[None]:
    started = threading.Thread(target=target)
    started.start()
    time.sleep(TAKES / 4)
    try:
        yield
    finally:
        end()
        started.join()


@contextmanager
def waits_for_an_event() -> Iterator[None]:
    event = threading.Event()
    with thread(event.wait, event.set):
        yield


@contextmanager
def waits_for_a_queue() -> Iterator[None]:
    queue = Queue[None]()
    with thread(queue.get, lambda: queue.put(None)):
        yield


@contextmanager
def accepts_connections() -> Iterator[None]:
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    with (
        listener,
        thread(lambda: listener.accept()[0].close(), lambda: socket.create_connection(address).close()),
    ):
        yield


@contextmanager
def runs_a_loop() -> Iterator[None]:
    loop = asyncio.new_event_loop()
    with closing(loop), thread(loop.run_forever, lambda: loop.call_soon_threadsafe(loop.stop)):
        yield


@contextmanager
def serves() -> Iterator[None]:
    with in_a_thread() as address, socket.create_connection(address):
        yield


@contextmanager
def is_in_a_pool() -> Iterator[None]:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        yield


@contextmanager
def is_a_worker() -> Iterator[None]:
    worker = Worker()
    worker.queue.put(lambda: None)
    yield
    worker.queue.put(None)


@contextmanager
def waits_for_hours() -> Iterator[None]:
    timer = threading.Timer(3600, int)
    timer.start()
    yield
    timer.cancel()


IDLE = [
    waits_for_an_event, waits_for_a_queue, accepts_connections, runs_a_loop, serves, is_in_a_pool, is_a_worker,
    waits_for_hours,
]  # fmt: skip


@contextmanager
def works_for_ever() -> Iterator[None]:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            time.sleep(TAKES / 10)

    with thread(work, stop.set):
        yield
