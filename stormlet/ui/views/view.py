"""The choice of a page, and all values of it by name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, Protocol

import msgspec

from stormlet.drawing.drawing import counts_of
from stormlet.report.health import Health
from stormlet.report.steps import Steps, at_once
from stormlet.ui.answers import NotFound
from stormlet.ui.views.detail import connections_of, facts_of, failures_of
from stormlet.ui.views.graph import Graph
from stormlet.ui.views.letters import letters_of
from stormlet.ui.views.lines import lines_of
from stormlet.ui.views.numbers import COLUMNS, Numbers
from stormlet.ui.views.rows import component_rows, edge_rows, task_rows
from stormlet.ui.views.settings import settings_of
from stormlet.ui.views.trees import trees_of
from stormlet.ui.watched import Reading, Watched

KINDS: Final = ("overview", "component", "errors", "trees", "letters", "settings")


class View(msgspec.Struct, frozen=True):
    """The choice of a page."""

    kind: str = "overview"
    window: str = "10m"
    component: str = ""


class About(msgspec.Struct, frozen=True):
    """A topology as a whole."""

    id: str
    name: str
    state: str
    began: datetime
    counts: str
    """The numbers of spouts, bolts, tasks and ackers, in words."""
    ready: bool
    pending: int
    crash: str | None
    closing: tuple[str, ...]
    restarting: tuple[str, ...]
    full: tuple[str, ...]
    epoch: int | None
    sentence: str | None = None
    """The bottleneck, and what to turn."""
    bottleneck: str | None = None
    """The component that the sentence is about."""
    dead_letters: int = 0
    left_over: int = 0
    failures: int = 0
    """Kinds of failures so far."""
    values: bool = False
    """True if values may be shown."""
    changes: bool = False
    """True if something may be changed."""


class Shows(msgspec.Struct, frozen=True):
    """The permissions of the page."""

    values: bool = False
    changes: bool = False


class Page(Protocol):
    """A topology as the page shows it, whether it runs or was recorded."""

    @property
    def id(self) -> str:
        """Its id in addresses."""
        ...

    @property
    def name(self) -> str:
        """Its own name."""
        ...

    @property
    def state(self) -> str:
        """The state of its run, in a word."""
        ...

    @property
    def is_live(self) -> bool:
        """True if anything may still change."""
        ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the topology; None if it was recorded."""
        ...

    def graph(self) -> Graph:
        """Return its picture."""
        ...

    def values(self, view: View) -> Mapping[str, object]:
        """Return all values of a page, by name; raise :class:`~stormlet.ui.answers.NotFound` for a component that is
        not there."""
        ...

    def values_in_steps(self, view: View) -> Steps[Mapping[str, object]]:
        """Do the same in steps, for those who share the loop with a large topology."""
        ...


class LivePage:
    """A topology that runs."""

    is_live = True

    def __init__(self, watched: Watched, shows: Shows) -> None:
        self._watched = watched
        self._shows = shows
        self.id = watched.id
        self.name = watched.name
        self.loop = watched.running.loop

    @property
    def state(self) -> str:
        """The state of its run, in a word."""
        return self._watched.health.state.value

    def graph(self) -> Graph:
        """Return its picture."""
        return self._watched.graph

    def values(self, view: View) -> Mapping[str, object]:
        """Return all values of a page, by name; raise :class:`~stormlet.ui.answers.NotFound` for a component that is
        not there."""
        return at_once(self.values_in_steps(view))

    def values_in_steps(self, view: View) -> Steps[Mapping[str, object]]:
        """Do the same in steps, a component after the other."""
        if view.kind == "component" and view.component not in self._watched.components:
            raise NotFound(f"topology {self.name!r} has no component {view.component!r}")
        reading = yield from self._watched.reading_in_steps(view.window, view.component)
        rows = yield from component_rows(self._watched, reading, self._watched.health)
        return dict(_values(self._watched, view, self._shows, reading, rows))


def _values(
    watched: Watched, view: View, shows: Shows, reading: Reading, rows: Mapping[str, Numbers]
) -> Iterator[tuple[str, object]]:
    health = watched.health
    yield "columns", COLUMNS
    yield "series", lines_of(watched, view.window, view.component)
    yield "about", _about(watched, view, reading, health, shows)
    yield from ((f"c/{id}", row) for id, row in rows.items())
    yield from ((f"e/{id}", row) for id, row in edge_rows(watched, reading, rows).items())
    match view.kind:
        case "component":
            yield from _component(watched, view.component, reading, health, shows)
        case "errors":
            yield "failures", failures_of(watched, None, values=shows.values)
        case "trees":
            yield "trees", trees_of(watched, values=shows.values)
        case "letters":
            yield "letters", letters_of(watched, values=shows.values)
        case "settings":
            yield "settings", settings_of(watched)
        case _:
            pass


def _about(watched: Watched, view: View, reading: Reading, health: Health, shows: Shows) -> About:
    found = watched.bottleneck(view.window)
    return About(
        id=watched.id,
        name=watched.name,
        state=health.state.value,
        began=watched.began,
        counts=counts_of(watched.running.plan),
        sentence=None if found is None else found.sentence,
        bottleneck=None if found is None else found.component or None,
        ready=health.ready,
        pending=health.pending,
        crash=health.crash,
        closing=health.closing,
        restarting=health.restarting,
        full=health.full,
        epoch=health.epoch,
        dead_letters=reading.now.dead_letters,
        left_over=reading.now.left_over,
        failures=len(watched.running.failures()),
        values=shows.values,
        changes=shows.changes,
    )


def _component(
    watched: Watched, id: str, reading: Reading, health: Health, shows: Shows
) -> Iterator[tuple[str, object]]:
    yield "facts", facts_of(watched, id)
    yield from ((f"t/{task}", row) for task, row in task_rows(watched, id, reading, health).items())
    yield "failures", failures_of(watched, id, values=shows.values)
    yield "connections", connections_of(watched, id)
