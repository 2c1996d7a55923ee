"""All that the page shows, in one file, to be looked at later and elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from stormlet.errors import InvalidConfiguration
from stormlet.report.steps import Steps
from stormlet.ui.answers import NotFound
from stormlet.ui.views.graph import Graph
from stormlet.ui.views.view import KINDS, Page, View
from stormlet.ui.windows import WINDOWS

VERSION: Final = 1
MOST_COMPONENTS: Final = 200
"""Components whose own pages are kept; of larger topologies, these are missing."""


class Topology(msgspec.Struct, frozen=True):
    """One topology."""

    id: str
    name: str
    state: str
    graph: Graph
    views: dict[str, dict[str, Any]]
    """By view, window and component: the values of that page, without those of the overview."""


class Snapshot(msgspec.Struct, frozen=True):
    """All topologies."""

    snapshot: int
    """The version of its form."""
    taken: datetime
    topologies: list[Topology]


def snapshot_of(pages: Sequence[tuple[Page, Graph]]) -> Steps[Snapshot]:
    """Take all that is shown."""
    topologies: list[Topology] = []
    for page, graph in pages:
        topologies.append((yield from _topology(page, graph)))
    return Snapshot(VERSION, datetime.now(UTC), topologies)


def _topology(page: Page, graph: Graph) -> Steps[Topology]:
    views: dict[str, dict[str, Any]] = {}
    for view in (yield from _views(page)):
        values, common = (yield from page.values_in_steps(view)), views.get(_overview(view), {})
        views[key_of(view)] = {name: value for name, value in values.items() if name not in common}
    return Topology(page.id, page.name, page.state, graph, views)


def _views(page: Page) -> Steps[list[View]]:
    kinds = [View(kind, window) for kind in KINDS if kind != "component" for window in WINDOWS]
    overview = yield from page.values_in_steps(View("overview", "all"))
    components = [name.removeprefix("c/") for name in overview if name.startswith("c/")]
    if len(components) > MOST_COMPONENTS:
        return kinds
    return [*kinds, *(View("component", window, id) for id in components for window in WINDOWS)]


def _overview(view: View) -> str:
    return key_of(View("overview", view.window))


def key_of(view: View) -> str:
    """Return the name of a page in the file."""
    return f"{view.kind} {view.window} {view.component}".rstrip()


class RecordedPage:
    """A topology of the file."""

    is_live = False
    loop = None

    def __init__(self, topology: Topology, taken: datetime) -> None:
        self.id = topology.id
        self.name = topology.name
        self.state = topology.state
        self._topology = topology
        self._taken = taken

    def graph(self) -> Graph:
        """Return its picture."""
        return self._topology.graph

    def values(self, view: View) -> Mapping[str, object]:
        """Return all values of a page; raise :class:`~stormlet.ui.answers.NotFound` for one that was not taken."""
        found = self._topology.views.get(key_of(view))
        if found is None:
            raise NotFound(f"the snapshot has no page of {view.component or view.kind!r}")
        overview = self._topology.views[_overview(view)]
        # What is over cannot be changed, whatever the page allowed.
        about = {**overview["about"], "changes": False}
        return {**overview, **found, "about": about, "taken": self._taken}

    def values_in_steps(self, view: View) -> Steps[Mapping[str, object]]:
        """Do the same; there is nothing to be reckoned."""
        yield
        return self.values(view)


class Recorded:
    """The topologies of a file."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._pages = {each.id: RecordedPage(each, snapshot.taken) for each in snapshot.topologies}

    def all(self) -> Sequence[Page]:
        """Return all topologies."""
        return list(self._pages.values())

    def get(self, id: str) -> Page:
        """Return one; raise :class:`~stormlet.ui.answers.NotFound`."""
        if id not in self._pages:
            raise NotFound(f"the snapshot has no topology {id!r}; it has {', '.join(self._pages)}")
        return self._pages[id]


def read_snapshot(path: Path) -> Snapshot:
    """Read a file; raise :class:`~stormlet.errors.InvalidConfiguration` for one that is no snapshot."""
    try:
        snapshot = msgspec.json.decode(path.read_bytes(), type=Snapshot)
    except OSError as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"{path} is no snapshot of the page: {error}") from None
    if snapshot.snapshot != VERSION:
        raise InvalidConfiguration(f"{path} is a snapshot of another version of stormlet")
    return snapshot
