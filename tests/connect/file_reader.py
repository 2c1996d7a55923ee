"""A session with files, without its driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from stormlet.connect import files
from stormlet.connect.address import read_address
from stormlet.connect.driver.context import SourceTask
from stormlet.connect.files.session import FileSession
from stormlet.connect.session import Delivery, Settlement
from stormlet.core.settlement.prefix import Prefix


def _never(*_: object) -> Any:
    raise AssertionError("files are not revoked")


class Reader:
    """A session, and what it has received and not settled."""

    def __init__(self, session: FileSession) -> None:
        self.session = session
        self.got: list[Delivery] = []
        self._numbers: list[int] = []

    async def lines(self, count: int) -> list[str]:
        """Receive so many lines."""
        found: list[Delivery] = []
        async with asyncio.timeout(60):
            while len(found) < count:
                found += await self.session.receive(count - len(found), 1)
        for each in found:
            assert each.place is not None
            self._numbers.append(each.place.add(each.position))
        self.got += found
        return [each.body.decode() for each in found]

    async def nothing(self) -> bool:
        """True if nothing comes."""
        return not await self.session.receive(10, 0.1)

    async def settle(self, *indices: int) -> None:
        """These are done, of all that was received; without any, all are."""
        for index in indices or range(len(self.got)):
            place = self.got[index].place
            assert place is not None
            place.settle(self._numbers[index])
        places = dict.fromkeys(each.place for each in self.got if each.place is not None)
        fronts = [(place, front) for place in places if (front := place.to_commit()) is not None]
        await self.session.settle(Settlement(fronts=fronts))
        for place, front in fronts:
            place.committed(front)


@asynccontextmanager
async def reading(
    source: files.Tail[Any] | files.Lines[Any], *, parallelism: int = 1
) -> AsyncIterator[Reader]:
    """A session with files."""
    context = SourceTask(
        "t", "lines", 0, parallelism, "here-lines-0", 1, Random(1), 100, Prefix, _never, _never
    )
    session = await source.begin(read_address(source.url or "", where="test"), context)
    try:
        yield Reader(session)
    finally:
        await session.close()
