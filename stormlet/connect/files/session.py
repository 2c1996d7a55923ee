"""A source's session with files: positions of lines are settled file by file, in a bookmark."""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from stormlet.connect.files.bookmark import Bookmark, Mark
from stormlet.connect.files.opened import Opened
from stormlet.connect.session import Delivery, Settlement, SourceContext
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import EndOfStream


class Files(Protocol):
    """The files of a source, one after another."""

    marks: dict[tuple[int, int], Mark]
    """How far files are done that are still there."""
    is_over: bool
    """True if there are no more, and will be none."""

    def current(self) -> Opened | None:
        """Return the file to read; None if there is none."""
        ...

    def at_end(self, opened: Opened, now: float) -> None:
        """All that is in it was read, for now."""
        ...

    def close(self) -> None:
        """Close those that were not read."""
        ...


class FileSession:
    """See :class:`~stormlet.connect.session.Session`."""

    def __init__(self, context: SourceContext, files: Files, bookmark: Bookmark, poll: float) -> None:
        """``poll``: seconds between two looks for more."""
        self._context = context
        self._files = files
        self._bookmark = bookmark
        self._poll = poll
        self._opened: dict[Prefix, Opened] = {}
        self._current: Opened | None = None
        self._paused: set[Prefix] = set()
        self._interrupted = asyncio.Event()

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - see Session
        """Return lines, as soon as there are any."""
        until = get_running_loop().time() + timeout
        while not (found := await self._read(most)):
            left = until - get_running_loop().time()
            if self._files.is_over:
                raise EndOfStream
            if left <= 0 or self._interrupted.is_set():
                return ()
            await self._wait(min(left, self._poll))
        return found

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._interrupted.wait()
        except TimeoutError:
            return

    async def _read(self, most: int) -> Sequence[Delivery]:
        """Read until there is something, or nothing more at the moment."""
        while (opened := self._files.current()) is not None:
            self._current = opened
            place = self._place_of(opened)
            if place in self._paused:
                return ()
            if bodies := opened.take(most, at_end=opened.is_over):
                return [self._delivery(opened, place, *each) for each in bodies]
            if opened.is_over or not await asyncio.to_thread(opened.read):
                was_over = opened.is_over
                self._files.at_end(opened, get_running_loop().time())
                if opened.is_over == was_over and self._files.current() is opened:
                    return ()
        return ()

    def _place_of(self, opened: Opened) -> Prefix:
        if opened.place is None:
            opened.place = self._context.assigned(str(opened.path))
            self._opened[opened.place] = opened
        return opened.place

    def _delivery(self, opened: Opened, place: Prefix, body: bytes, end: int) -> Delivery:
        name = f"{opened.path.name}#{opened.key[1]}@{end}"
        return Delivery(body=body, name=name, place=place, position=end)

    def interrupt(self) -> None:
        """Have a read that waits return."""
        self._interrupted.set()

    async def settle(self, settlement: Settlement) -> int:
        """Write the bookmark."""
        for place, front in settlement.fronts:
            self._opened[place].done = front.position
        for place, opened in list(self._opened.items()):
            self._files.marks[opened.key] = opened.mark()
            if opened.is_over and opened.done == opened.last and opened is not self._current:
                opened.close()
                del self._opened[place]
        await asyncio.to_thread(self._bookmark.save, list(self._files.marks.values()))
        return 0

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        """Not called: there are no leases."""
        return ()

    async def pause(self, places: Collection[Prefix]) -> None:
        """Read no more of these files."""
        self._paused.update(places)

    async def resume(self, places: Collection[Prefix]) -> None:
        """Read these files again."""
        self._paused.difference_update(places)

    async def lag(self) -> Mapping[str, int]:
        """Not called: bytes are not messages."""
        return {}

    async def close(self) -> None:
        """Close all files."""
        for opened in self._opened.values():
            opened.close()
        self._files.close()
        self._bookmark.close()
