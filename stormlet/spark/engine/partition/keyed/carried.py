"""Keyed state that goes from one run into another: from a state file, into one, and to other numbers of tasks.

All of these have the same blobs. What changes is their places: a key belongs to the task that the grouping names, so
that blobs are parted anew where a run has other tasks than the one before (law K5). That is done in the driver, once
for a run: the state of a file was in the memory of one process before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from time import time
from typing import Any

from stormlet.core.state.codecs import encoded
from stormlet.core.state.commits import Append, Commit, Shape, StateId, Stored
from stormlet.core.state.states import State
from stormlet.model.description import BoltSpec, Description
from stormlet.runtime.epochs.merging import merged
from stormlet.runtime.epochs.states import KeptState
from stormlet.spark.engine.partition.keyed.groups import (
    UNWRITTEN,
    Blob,
    blob_in,
    blobs_of,
    by_group,
    by_state,
    rows_of,
)
from stormlet.spark.engine.partition.rows import Row
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place
from stormlet.state.memory import MemoryStore
from stormlet.state.stores import owned, reader

Blobs = Mapping[StateId, Sequence[bytes]]
Shapes = Mapping[StateId, Shape]


def stored_in(path: str | os.PathLike[str]) -> Stored:
    """Return what a state file has. Raise :class:`~stormlet.errors.StateUnusable`."""
    with closing(reader(path)) as found:
        return found.load().in_memory()


def keyed_places(cluster: ClusterPlan) -> Mapping[str, Sequence[Place]]:
    """Return the places of the tasks of each keyed bolt."""
    bolts = keyed_bolts(cluster.plan.description)
    return {id: [cluster.places[task.task] for task in cluster.plan.tasks[id]] for id in bolts}


def keyed_bolts(description: Description) -> Mapping[str, BoltSpec]:
    """Return the bolts with keyed state."""
    return {id: spec for id, spec in description.bolts.items() if spec.keyed}


def shapes_of(description: Description) -> Shapes:
    """Return the types of all keyed states, in words."""
    return {
        StateId(id, name): declared.shape
        for id, spec in keyed_bolts(description).items()
        for name, declared in spec.states.items()
    }


def check_shapes(description: Description, shapes: Shapes) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for states that the topology does not declare any more, or declares
    as something else (law K5)."""
    KeptState(MemoryStore(), Stored("", shapes=shapes), description)


def rows_with(cluster: ClusterPlan, blobs: Blobs, shapes: Shapes) -> Sequence[Row]:
    """Return the rows that bring states to the tasks of a run. Raise :class:`~stormlet.errors.StateUnusable` for those
    that are not as the topology declares them."""
    description = cluster.plan.description
    kept = KeptState(MemoryStore(), Stored("", shapes=shapes, states=blobs), description)
    found: list[Row] = []
    for id in keyed_bolts(description):
        states = [state for state in kept.states if state.id.component == id]
        for plan in cluster.plan.tasks[id]:
            groups: dict[int, list[Blob]] = {}
            for state in states:
                for group, entries in by_group(state.tables[plan.index]).items():
                    groups.setdefault(group, []).extend(blobs_of(state, entries, plan.index))
            found += rows_of(cluster.places[plan.task], groups, UNWRITTEN)
    return found


class EndStates:
    """The keyed states at the end of a run."""

    def __init__(self, description: Description, read: Callable[[], Iterable[Row]], now: float) -> None:
        """``read`` gives the rows that the run has left with them, and ``now`` is its time."""
        self._description = description
        self._read = read
        self._now = now

    def values(self, component: str, name: str | None) -> dict[Any, Any]:
        """Return a state by its keys; ``name`` may be left out for a bolt with a single one. Raise :class:`KeyError`
        naming the states there are."""
        ids = [each for each in shapes_of(self._description) if each.component == component]
        wanted = [each for each in ids if name is None or each.state == name]
        if len(wanted) != 1:
            asked = component if name is None else f"{component}.{name}"
            there = ", ".join(map(str, shapes_of(self._description))) or "none"
            raise KeyError(f"{asked!r} names {len(wanted)} states; there are {there}")
        return dict(self._opened(wanted[0], self._blobs()).tables[0].committed_items())

    def save(self, path: str | os.PathLike[str], *, merge: bool) -> None:
        """Write all of them into a state file: in the place of those that it has, or merged with them. Raise
        :class:`~stormlet.errors.StateUnusable`, and :class:`~stormlet.errors.InvalidTopology` for a bolt without a
        ``merge``."""
        description, blobs = self._description, self._blobs()
        with closing(owned(path, description.name)) as file:
            stored = file.load().in_memory()
            check_shapes(description, stored.shapes)
            shapes = shapes_of(description)
            file.declare(shapes)
            appends = (
                merged(description, self._all(stored.states), self._all(blobs))
                if merge
                else [each for id in shapes for each in self._appends(id, stored, blobs)]
            )
            file.commit(Commit(stored.epoch + 1, time(), {}, appends))

    def _all(self, blobs: Blobs) -> Mapping[StateId, State]:
        return {id: self._opened(id, blobs) for id in shapes_of(self._description)}

    def _blobs(self) -> Blobs:
        return by_state([blob_in(row) for row in self._read()])

    def _opened(self, id: StateId, blobs: Blobs) -> State:
        state = State(id, self._description.bolts[id.component].states[id.state])
        state.load(blobs.get(id, ()))
        state.tell(self._now)
        return state

    def _appends(self, id: StateId, stored: Stored, blobs: Blobs) -> Sequence[Append]:
        before, now = (set(self._opened(id, each).tables[0].entries()) for each in (stored.states, blobs))
        gone = before - now
        written = [*blobs.get(id, ()), *([encoded(dict.fromkeys(gone))] if gone else [])]
        return [Append(id, blob, number == 0) for number, blob in enumerate(written)]
