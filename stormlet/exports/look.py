"""Looks at running topologies from any thread: exporters have their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from itertools import count
from threading import get_ident
from typing import Final

from stormlet.exports.families import Family, grouped
from stormlet.exports.metrics import BY_TASK, METRICS, measured
from stormlet.report.health import Health
from stormlet.report.statistics import Statistics
from stormlet.runtime.run.handle import Running
from stormlet.runtime.run.sliced import in_slices

PATIENCE: Final = 2.0
"""Seconds for which another thread waits for the loop, where there is something to show instead."""
FIRST_PATIENCE: Final = 30.0
"""The same before there is anything."""


class Look:
    """A look at one topology.

    Raises :class:`RuntimeError` if it is made elsewhere than on a loop.
    """

    def __init__(self, run: Running, label: str) -> None:
        self.label = label
        """The name of the topology in metrics."""
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._last = Statistics({}), run.health()
        self._patience = FIRST_PATIENCE
        self._asked: Future[None] | None = None
        """The look that another thread has asked for last; it takes as many turns of the loop as it needs."""

    def take(self) -> tuple[Statistics, Health]:
        """Return what there is now, or what there was last where the loop is held up. On the loop itself all of it is
        taken at once; for another thread in slices, between which everything else runs."""
        if get_ident() == self._thread or self._loop.is_closed():
            self._last = self._run.statistics(), self._run.health()
            self._patience = PATIENCE
        else:
            self._ask()
        return self._last

    def _ask(self) -> None:
        if self._asked is None or self._asked.done():
            taking = self._take()
            try:
                self._asked = asyncio.run_coroutine_threadsafe(taking, self._loop)
            except RuntimeError:  # it was closed just now
                taking.close()
                return
        with suppress(TimeoutError, CancelledError):  # it is held up, and what was begun goes on; or it ends
            self._asked.result(self._patience)

    async def _take(self) -> None:
        _, statistics = await in_slices(self._run.monitor.now())
        self._last = statistics, self._run.health()
        self._patience = PATIENCE


class Looks:
    """Looks at any number of topologies, for one exporter.

    With ``by_task`` what is measured of tasks has a label for each, instead of the sum over a component.
    """

    def __init__(self, runs: Iterable[Running], *, by_task: bool = False) -> None:
        self.metrics = tuple(BY_TASK.get(metric, metric) for metric in METRICS) if by_task else METRICS
        self._by_task = by_task
        self._looks: dict[Running, Look] = {}
        for run in runs:
            self.add(run)

    def add(self, run: Running, label: str = "") -> None:
        """Look at this one, too. To be called on its loop. Its ``label`` is its name, with a number if another has it:
        two samples of one name and the same labels would be no valid metrics."""
        self.remove(run)
        self._looks[run] = Look(run, self._free(label or run.name))

    def remove(self, run: Running) -> None:
        """Look at this one no longer."""
        self._looks.pop(run, None)

    def families(self) -> Sequence[Family]:
        """Return all metrics, with what is measured now."""
        found = (
            each
            for look in list(self._looks.values())
            for each in measured(look.label, *look.take(), by_task=self._by_task)
        )
        return grouped(self.metrics, found)

    def _free(self, label: str) -> str:
        taken = {each.label for each in self._looks.values()}
        numbered = (label if number == 1 else f"{label}-{number}" for number in count(1))
        return next(each for each in numbered if each not in taken)
