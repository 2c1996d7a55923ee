"""The limits of a topology, as far as figures and plan tell: what is used up, and if its sources are held up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from stormlet.report.figures import ComponentFigures, EdgeFigures, Figures, TaskFigures


class ComponentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the plan about a component."""

    is_spout: bool = False
    parallelism: int = 1
    concurrency: int = 1
    """Bolt: calls that one task may have under way."""
    has_threads: bool = False
    """Bolt: its code runs in threads."""
    by_epochs: bool = False
    """Bolt: it writes epochs as a whole."""
    max_pending: int | None = None
    """Spout: ``max_spout_pending`` of one task."""

    @property
    def most_pending(self) -> int | None:
        """Spout: the messages that all of its tasks together may have pending."""
        return None if self.max_pending is None else self.max_pending * self.parallelism


BUSY: Final = 0.8
"""The part of the time from which on a task counts as busy."""
FULL: Final = 0.9
"""The part of the time from which on the loop counts as full, whatever the sources say."""
HELD_UP: Final = 0.25
"""The part of its time from which on a source counts as held up."""
MOSTLY: Final = 0.5
"""The part from which on one thing alone is the reason."""
FULL_QUEUE: Final = 0.9
"""The fill of a queue from which on it is called full."""
CROWDED: Final = 0.5
"""The fill of a queue from which on its producers are about to wait."""
WAITED: Final = 0.1
"""The part of the time that producers wait for room, from which on a queue counts as crowded."""
ENOUGH: Final = 50
"""Probes of the loop from which on they tell something; that many come in some seconds."""
LONG_CALL: Final = 30.0
"""Seconds without the end of a call, from which on a time limit is missing."""
BACKLOG: Final = 10.0
"""Seconds of a source's work that wait at its broker, from which on it has more to give."""


class Limits:
    """The figures with what several rules want to know of them."""

    def __init__(self, figures: Figures, facts: Mapping[str, ComponentFacts]) -> None:
        self.figures = figures
        self.facts = facts
        known = {id: each for id, each in figures.components.items() if id in facts}
        self.spouts = {id: each for id, each in known.items() if facts[id].is_spout}
        self.bolts = {id: each for id, each in known.items() if not facts[id].is_spout}
        self.on_loop = {
            id: _together(each)
            for id, each in figures.components.items()
            if id not in facts or not facts[id].has_threads
        }
        """The part of the window in which each component holds the loop."""
        computing = sum(self.on_loop.values())
        loop = figures.loop
        self.own = computing if loop is None else max(loop.own, computing)
        is_probed = loop is not None and loop.lag.count >= ENOUGH
        self.others = max(0.0, loop.busy - self.own) if loop is not None and is_probed else 0.0
        self.is_held_up = any(self._is_held_up(id, each) for id, each in self.spouts.items())

    def _is_held_up(self, id: str, spout: ComponentFigures) -> bool:
        most = self.facts[id].most_pending
        if most is not None and spout.pending >= most:
            return True
        return any(_held_up(each) >= HELD_UP for each in (spout, *spout.tasks.values()))

    @property
    def is_full(self) -> bool:
        """True if there is no time left on the loop."""
        return self.own + self.others >= (BUSY if self.is_held_up else FULL)

    def is_busy(self, id: str, bolt: ComponentFigures) -> bool:
        """True if a task of a bolt is busy, and more waits for it: in full queues, or while all its places are taken
        and sources are held up; for a committer, in epochs."""
        busiest = bolt.busiest
        if self.facts[id].by_epochs:
            epoch = self.figures.epoch
            return busiest.shares.busy >= FULL and epoch is not None and epoch.withheld > 0
        waits = self.is_held_up and self._exceeds_places(id, busiest.pending)
        return busiest.shares.busy >= BUSY and (waits or bool(self.crowded(id)))

    def _exceeds_places(self, id: str, pending: int) -> bool:
        facts = self.facts[id]
        if pending or any(each.pending for each in self.spouts.values()):
            return pending > facts.concurrency
        # The run has ended, or waits for its source: what is pending now tells nothing of the window.
        most = [self.facts[spout].most_pending for spout in self.spouts]
        return any(each is None or each > facts.concurrency * facts.parallelism for each in most)

    def crowded(self, bolt: str) -> Sequence[EdgeFigures]:
        """The edges to a bolt on which its producers wait, or are about to."""
        return [
            each
            for each in self.figures.edges
            if each.consumer == bolt and (each.waited >= WAITED or each.fullest >= CROWDED)
        ]


def _together(component: ComponentFigures) -> float:
    """The time that all tasks compute, as a part of the window."""
    tasks = component.tasks.values()
    return sum(each.shares.executing for each in tasks) if tasks else component.shares.executing


def _held_up(task: TaskFigures) -> float:
    return task.shares.blocked + task.shares.limited
