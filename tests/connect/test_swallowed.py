"""Tasks that sessions have beside them end with their sessions, also when a client has swallowed a cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stormlet.connect.driver.ending import end
from stormlet.connect.kestrel import QueueSession
from stormlet.connect.nats.connection import Connection
from stormlet.connect.postgres.capture import ChangesSession
from stormlet.connect.redis.session import Group, StreamSession

pytestmark = [pytest.mark.asyncio, pytest.mark.simulated_time]


class Client:
    """It loses the first cancellation, as ``asyncio.wait_for`` does before Python 3.12, and goes on."""

    is_lost = False

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def call(self, *_: Any) -> Any:
        self.begun.set()
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            await asyncio.sleep(1000)

    get = end = call

    async def close(self) -> None:
        """Nothing."""


async def test_connections_of_kestrel_are_ended() -> None:
    """One that waits for an item."""
    client: Any = Client()
    client.close = lambda: None
    session = QueueSession("words", Any, client, 1)  # type: ignore[arg-type]
    await client.begun.wait()
    async with asyncio.timeout(30):
        await session.close()


async def test_the_watch_of_nats_is_ended() -> None:
    """It looks at the client now and then."""
    client: Any = Client()
    connection: Any = Connection(Any)  # type: ignore[arg-type]
    connection._client = client
    connection._watching = asyncio.create_task(client.call())
    await client.begun.wait()
    async with asyncio.timeout(30):
        await connection.close()


async def test_the_unblocking_of_a_read_of_redis_is_ended() -> None:
    """It asks the server until the read has returned."""
    reader: Any = Client()
    control: Any = Client()
    session: Any = StreamSession(Group("orders", "billing", "me", 60.0, "body", False), reader, 1, control)
    reading = asyncio.create_task(session.receive(1, 5.0))
    await reader.begun.wait()
    session.interrupt()
    await control.begun.wait()
    reader.is_lost = True
    async with asyncio.timeout(30):
        await session.close()
    await end([reading])


async def test_a_look_for_changes_of_postgres_is_ended() -> None:
    """The end does not wait for what the look would do next."""
    slot: Any = Client()
    slot.name = "billing"
    session = ChangesSession(Bare(), slot, 0, poll=0.2, warn_bytes=1)  # type: ignore[arg-type]
    reading = asyncio.create_task(session.receive(1, 5.0))
    await slot.begun.wait()
    session.interrupt()
    async with asyncio.timeout(30):
        assert not await reading


class Bare:
    """As much of the context of a source as is asked for at the beginning."""

    resume = None
    component = "changes"

    def assigned(self, name: str) -> None:
        """Nothing is committed."""
