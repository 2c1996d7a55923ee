"""What a read raises that nobody waits for any more, as its connection is given up."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import pytest

from stormlet import Topology
from stormlet.connect.address import Address
from stormlet.connect.session import Delivery, Settlement, SourceContext
from stormlet.errors import ConnectionLost
from stormlet.testing import run_simulated
from tests.connect.conformance import noted_logs
from tests.connect.price import Listed, ListSession


class Telling(Listed):
    """A source whose first connection is given up, and whose client tells a secret in what a read raises meanwhile."""

    def __init__(self, when: str) -> None:
        super().__init__("prefix", 10, max_uncommitted=1)
        self.told = list[str]()
        self._when = when

    async def begin(self, address: Address, context: SourceContext) -> ListSession:
        if context.connection > 1:
            return ListSession("prefix", self._count, context)
        return TellingSession(self._when, self.told, context)


class TellingSession(ListSession):
    """It keeps the reader waiting with one message, while the next read raises, and is lost meanwhile."""

    def __init__(self, when: str, told: list[str], context: SourceContext) -> None:
        super().__init__("prefix", 1, context)
        self._when = when
        self._told = told
        self._reads = 0

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        self._reads += 1
        if self._reads == 1:
            return await super().receive(1, within)
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1 if self._when == "before it is cancelled" else 1000)
        self._told.append(self._when)
        raise ValueError("the password is hunter2")

    async def pause(self, places: Collection[Any]) -> None:
        await asyncio.sleep(1000)

    async def settle(self, settlement: Settlement) -> int:
        await asyncio.sleep(2)
        raise ConnectionLost("the connection was reset")


@pytest.mark.parametrize("when", ["before it is cancelled", "when it is cancelled"])
def test_what_a_read_raises_that_nobody_waits_for_is_not_logged(when: str) -> None:
    """asyncio would log it as never retrieved, with the words of the client, which nothing has scrubbed (law R9)."""
    source = Telling(when)

    async def read() -> None:
        topology: Any = Topology("telling")
        topology.bolt("see", len, topology.spout("read", source, outputs=bytes).shuffle())
        async with topology.run() as running:
            await running.finished()

    with noted_logs() as lines:
        run_simulated(read())
        gc.collect()
    assert source.told == [when]
    assert any("the connection was reset" in line for line in lines)
    assert "hunter2" not in "\n".join(lines)
