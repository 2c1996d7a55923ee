"""Kestrel's queues, against a server that speaks its protocol over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stormlet import DeadLetter, StartFailed, Topology
from stormlet.connect import kestrel
from stormlet.connect.address import read_address
from stormlet.connect.kestrel import Wire
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from stormlet.errors import ConnectionLost
from stormlet.testing.brokers.kestrel import KestrelServer
from tests.connect.conformance import CASES, QUEUE, Bench, Case, name_of


class RealKestrel(Bench):
    """The connector over sockets, in real time."""

    name = "kestrel"
    rules = kestrel.Queue(None, QUEUE, as_=bytes).capabilities
    faults = frozenset({"cut", "restart", "secret"})

    def begin(self) -> None:
        self.server = KestrelServer()

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def running() -> None:
            await self.server.start()
            try:
                await work()
            finally:
                await self.server.stop()

        asyncio.run(running())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @property
    def url(self) -> str:
        return f"kestrel://127.0.0.1:{self.server.port}"

    def source(self, **options: Any) -> Source[Any]:
        return kestrel.Queue[Any](self.url, QUEUE, **options)

    def sink(self) -> Sink[bytes]:
        return kestrel.Set[bytes](self.url, QUEUE)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        self.server.queues[QUEUE].append(body)

    async def left(self) -> list[bytes]:
        return self.server.left(QUEUE)

    async def dead(self) -> list[bytes]:
        return []

    async def bring(self, fault: str) -> None:
        if fault == "cut":
            self.server.cut()
        else:
            await self.server.stop()
            self.again = asyncio.get_running_loop().create_task(self._later())

    async def _later(self) -> None:
        await asyncio.sleep(8)
        await self.server.start()


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_conformance(case: Case) -> None:
    """The same cases as the twins."""
    RealKestrel().hold(case)


@pytest.mark.asyncio
async def test_lines_go_through_a_topology_and_back() -> None:
    """From one queue to another, as the spout of Storm's guide has it."""
    server = KestrelServer()
    await server.start()
    url = f"kestrel://127.0.0.1:{server.port}"
    server.queues["sentences"].extend([b"the cow", b"the moon"])
    topology = Topology("words")
    lines = topology.spout("lines", kestrel.Queue[str](url, "sentences", as_=str))
    words = topology.bolt("split", str.split, lines.shuffle())
    topology.bolt("send", kestrel.Set[list[str]](url, "words"), words.shuffle())
    async with topology.run():
        async with asyncio.timeout(60):
            while len(server.left("words")) < 2 or server.left("sentences"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert server.left("words") == [b'["the","cow"]', b'["the","moon"]']
    await server.stop()


@pytest.mark.asyncio
async def test_an_item_that_is_refused_is_no_answer_to_the_next_batch() -> None:
    """It fails alone, and each other one is acked when the server has that one."""
    server, letters = KestrelServer(), list[DeadLetter]()
    await server.start()
    server.most_bytes = 10
    bodies = [b"%04d" % number for number in range(30)]
    bodies[7] = b"x" * 11
    topology = Topology("sending", max_spout_pending=10, replay_delay=0.01)
    sink = kestrel.Set[bytes](f"kestrel://127.0.0.1:{server.port}", "done", size=5)
    topology.bolt("send", sink, topology.spout("bodies", bodies).shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await running.finished()
        assert running.statistics().components["bodies"].acked == 29
    assert server.left("done") == sorted({*bodies} - {bodies[7]})
    assert [letter.value for letter in letters] == [bodies[7]]
    assert "the item is too large" in str(letters[0].failure)
    await server.stop()


@pytest.mark.asyncio
async def test_a_server_that_is_not_there_fails_the_start() -> None:
    """And is named."""
    topology = Topology("words")
    topology.bolt(
        "print", print, topology.spout("lines", kestrel.Queue("kestrel://127.0.0.1:9", "q")).shuffle()
    )
    with pytest.raises(StartFailed, match=r"kestrel://127.0.0.1:9 cannot be reached"):
        async with topology.run():
            pass


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a+b", "a~b", "a\r\nFLUSH_ALL"])
def test_a_name_that_is_more_than_that_is_refused(name: str) -> None:
    """It would be another command."""
    with pytest.raises(ValueError, match="is no name of a queue"):
        kestrel.Queue(None, name)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n"])
def test_somebody_else_at_the_port_fails_the_start(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who says nothing, or something else, is no Kestrel (law R8)."""

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.read()
        writer.close()

    async def start() -> None:
        server = await asyncio.start_server(answering, "127.0.0.1", 0)
        topology = Topology("words")
        port = server.sockets[0].getsockname()[1]
        topology.spout("words", kestrel.Queue(f"kestrel://127.0.0.1:{port}", "words", as_=str))
        async with server, topology.run():
            pass

    monkeypatch.setattr("stormlet.connect.kestrel.ANSWERS_WITHIN", 0.2)
    with pytest.raises(StartFailed, match=r"no answer within|not the protocol"):
        asyncio.run(start())


Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def with_wire(answering: Answering, work: Callable[[Wire], Awaitable[object]]) -> object:
    """Return what comes of work with a connection to a server that answers so."""

    async def run() -> object:
        is_over = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await answering(reader, writer)
            finally:
                writer.transport.abort()
                is_over.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            wire = await Wire.to(read_address(f"kestrel://127.0.0.1:{port}", where="test"))
            try:
                return await work(wire)
            finally:
                wire.close()
                await is_over.wait()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [
        b"VALUE q 0 x",
        b"VALUE q 0 -9",
        b"VALUE q 0",
        b"STAT \xff 3",
        b"STAT queue_q_items x",
        b"x" * 2**17,
    ],
)
def test_what_is_no_answer_loses_the_connection(answer: bytes) -> None:
    """Whatever it is: an error that nobody expects would end the reading of that connection in silence."""

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer + b"\r\nEND\r\n")
        await writer.drain()
        await reader.read()

    async def ask(wire: Wire) -> object:
        return await (wire.get("q") if answer.startswith(b"VALUE") else wire.items("q"))

    if answer == b"STAT \xff 3":  # of another queue, whose name is no text
        assert with_wire(answering, ask) == 0
    else:
        with pytest.raises(ConnectionLost, match="protocol"):
            with_wire(answering, ask)


def test_a_large_item_may_come_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as something comes."""

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"VALUE q 0 5\r\n")
        for piece in b"12345":
            await asyncio.sleep(0.8)
            writer.write(bytes([piece]))
        writer.write(b"\r\nEND\r\n")
        await reader.read()

    monkeypatch.setattr("stormlet.connect.kestrel.ANSWERS_WITHIN", 3.0)
    assert with_wire(answering, lambda wire: wire.get("q")) == b"12345"


def test_a_server_that_reads_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped accepts what its buffers hold."""
    gone = asyncio.Event()

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()

    async def write(wire: Wire) -> object:
        try:
            return await wire.set([("q", b"x" * 2**20)] * 20)
        finally:
            gone.set()

    monkeypatch.setattr("stormlet.connect.kestrel.ANSWERS_WITHIN", 0.2)
    with pytest.raises(ConnectionLost, match="no answer within"):
        with_wire(answering, write)
