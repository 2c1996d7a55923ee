"""The block of a running topology."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from stormlet.errors import InvalidTopology
from stormlet.runtime.running import Running


class Run:
    """``async with topology.run() as running``: leaving the block drains, an exception cancels."""

    def __init__(self, make: Callable[[], Running]) -> None:
        self._make = make
        self._running: Running | None = None

    async def __aenter__(self) -> Running:
        if self._running is not None:
            raise InvalidTopology("this run was entered before; call topology.run() again")
        self._running = self._make()
        await self._running.start()
        return self._running

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._running is not None, "the block was never entered"
        await self._running.leave(error)
