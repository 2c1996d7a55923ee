"""The topology that is looked at, its last picture, and what keeps that from being newer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from stormlet.cli.terminal.asking import Gone, Server, Unanswered
from stormlet.cli.terminal.picture import Picture
from stormlet.cli.units import rough_duration

WINDOWS: Final = ("1m", "10m", "1h", "all")
AGAIN: Final = 2.0
"""Seconds after which to ask again what was not answered."""
ODD: Final = (KeyError, TypeError, ValueError, AttributeError)
"""What comes of an answer of another shape than this version's."""


class Watch:
    """Asks about one topology at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.picture = Picture()
        self.topology: str | None = None
        self.others: Sequence[str] = ()
        """All topologies of the page."""
        self.window = "10m"
        self.component = ""
        """Empty: all components."""
        self.graph: Mapping[str, Any] | None = None
        self.poll: float | None = 0.0
        """Seconds after which to ask again; None if nothing will change any more."""
        self.stands = False
        """True if the picture is not to change, unless something else is looked at."""
        self._trouble = ""
        self._next: Picture | None = None
        self._at = time.monotonic()

    @property
    def trouble(self) -> str:
        """The reason why the picture is old; empty if it is not."""
        if not self._trouble or not self.picture:
            return self._trouble
        age = rough_duration(time.monotonic() - self._at)
        return f"{self._trouble}; this is the picture of {age} ago, and it is tried again"

    @property
    def turned(self) -> bool:
        """True if nothing was told yet of what is looked at now."""
        return self._next is not None

    def turn(self, *, window: str | None = None, component: str | None = None) -> None:
        """Look at something else. The picture stays until there is a new one."""
        self.window = self.window if window is None else window
        self.component = self.component if component is None else component
        self._next = Picture(self.component)

    async def turn_to_next(self) -> None:
        """Look at another topology."""
        await self._choose(after=self.topology)

    async def look(self) -> None:
        """Ask for what is new; never raises for what goes wrong there."""
        try:
            if self.topology is None:
                await self._choose(after=None)
            if self.topology is not None:
                await self._ask(self.topology)
        except Gone as error:
            await self._miss(str(error))
        except Unanswered as error:
            self._fail(str(error))
        except ODD:
            self._fail(f"{self._server.address.base} answers as no page of this version of stormlet does")

    async def draw_graph(self) -> None:
        """Ask for the streams between the components, which never change."""
        if self.graph is None and self.topology is not None:
            try:
                self.graph = await self._server.ask(f"api/v1/pages/{quote(self.topology, safe='')}/graph")
            except Unanswered as error:
                self._fail(str(error))

    async def _miss(self, words: str) -> None:
        """Say what is gone. A topology that was chosen stays chosen: it may come again."""
        with suppress(Unanswered, *ODD):
            await self._list()
        if self.topology not in self.others:
            words = f"the topology is gone: {words}{'; t leads to another one' if self.others else ''}"
        self._fail(words)

    async def _list(self) -> None:
        self.others = [each["id"] for each in await self._server.ask("api/v1/pages")]

    async def _choose(self, after: str | None) -> None:
        try:
            await self._list()
        except Unanswered as error:
            self._fail(str(error))
            return
        ids = self.others
        if not ids:
            self._fail(f"no topology runs at {self._server.address.base} yet")
            return
        chosen = ids[(ids.index(after) + 1) % len(ids)] if after in ids else ids[0]
        if chosen != self.topology:
            self.topology, self.graph = chosen, None
            self.turn(component="")

    async def _ask(self, topology: str) -> None:
        picture = self.picture if self._next is None else self._next
        asked = (topology, self.window, self.component)
        view = "component" if self.component else "overview"
        change = await self._server.ask(
            f"api/v1/pages/{quote(topology, safe='')}/changes",
            view=view, window=self.window, component=self.component, since=picture.revision,
        )  # fmt: skip
        if asked != (self.topology, self.window, self.component):
            return  # somebody has turned to something else meanwhile
        if self.stands and not self.turned:
            return  # or has paused
        if self._trouble:
            self.graph = None  # what comes again may be another one of that name
        picture.take(change)
        if self._next is picture:
            self._next = None
        self.picture, self._trouble, self._at = picture, "", time.monotonic()
        self.poll = change["pollSeconds"]

    def _fail(self, words: str) -> None:
        self._trouble, self.poll = words, AGAIN
