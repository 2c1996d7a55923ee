"""Kestrel's queues, against a server that speaks its protocol over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stormlet import DeadLetter, StartFailed, Topology
from stormlet.connect import kestrel
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
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
        async with asyncio.timeout(5):
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
