"""The part of the interface that the page itself uses: its picture, and what has changed since it last asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Protocol
from weakref import WeakValueDictionary

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from stormlet.runtime.run.sliced import Sliced, in_slices
from stormlet.ui.answers import answer, problem
from stormlet.ui.changes import Revisions
from stormlet.ui.loops import on_loop
from stormlet.ui.snapshot import snapshot_of
from stormlet.ui.views.view import KINDS, Page, View
from stormlet.ui.windows import WINDOWS, window_named

EVERY: Final = 1.0
"""Seconds between two questions of a page."""
SELDOM: Final = 30.0
COST: Final = 0.02
"""The part of the time that one page may cost; a large topology is asked for less often."""


class Pages(Protocol):
    """Finds what is shown."""

    def all(self) -> Sequence[Page]:
        """Return all topologies."""
        ...

    def get(self, id: str) -> Page:
        """Return one; raise :class:`~stormlet.ui.answers.NotFound`."""
        ...


class PageLine(msgspec.Struct, frozen=True):
    """One topology in the choice of all."""

    id: str
    name: str
    state: str


class PageApi:
    """Handlers of requests."""

    def __init__(self, pages: Pages, life: str) -> None:
        self._pages = pages
        self._revisions = Revisions(life)
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        """By topology, while somebody asks for it."""

    async def topologies(self, request: Request) -> Response:
        """All topologies, for the choice of one."""
        return answer([PageLine(each.id, each.name, each.state) for each in self._pages.all()])

    async def graph(self, request: Request) -> Response:
        """The picture of a topology. It is laid out in a thread, as that may take tenths of a second."""
        return answer(await asyncio.to_thread(self._pages.get(request.path_params["id"]).graph))

    async def snapshot(self, request: Request) -> Response:
        """All that the page shows, as a file."""
        pages = [(page, await asyncio.to_thread(page.graph)) for page in self._pages.all()]
        response = answer(await in_slices(snapshot_of(pages)))
        response.headers["content-disposition"] = 'attachment; filename="stormlet-snapshot.json"'
        return response

    async def trees(self, request: Request) -> Response:
        """The messages that are pending for longest, with the timelines of their attempts."""
        page = self._pages.get(request.path_params["id"])
        return answer((await _read(page, View("trees"), Sliced()))["trees"])

    async def changes(self, request: Request) -> Response:
        """Everything that has changed of a page since a revision."""
        page = self._pages.get(request.path_params["id"])
        view = view_of(request.query_params)
        if isinstance(view, str):
            return problem(400, view)
        sliced = Sliced()
        # One after the other: those who ask while an answer is put together get the same numbers for nothing.
        async with self._turns.setdefault(page.id, asyncio.Lock()):
            values = await _read(page, view, sliced)
        revised = self._revisions.of((page.id, view))
        revised.update(values)
        poll = min(max(EVERY, round(sliced.seconds / COST, 1)), SELDOM) if page.is_live else None
        return answer(revised.since(request.query_params.get("since", ""), poll))


async def _read(page: Page, view: View, sliced: Sliced) -> Mapping[str, object]:
    """Return all values of a page, read on the event loop of its topology while there is one: nothing changes there
    meanwhile."""

    async def read() -> Mapping[str, object]:
        return await sliced.run(page.values_in_steps(view))

    if page.loop is None or page.loop.is_closed():
        return await read()
    return await on_loop(page.loop, page.name, read)


def view_of(query: Mapping[str, str]) -> View | str:
    """Return the choice of a page, or what is wrong with it."""
    kind, window = query.get("view", "overview"), window_named(query.get("window", "10m"))
    if kind not in KINDS:
        return f"there is no view {kind!r}; there are {', '.join(KINDS)}"
    if window is None:
        return f"there is no window {query.get('window')!r}; there are {', '.join(WINDOWS)}"
    return View(kind, window, query.get("component", "") if kind == "component" else "")
