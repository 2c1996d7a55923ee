"""The block of the host, and the first crash, which cancels it (law C5).

A crash cancels the body of the block, as a task group does, so that the host gets it at whatever it awaits. Others
may cancel the body, too: a timeout around the block, or ``asyncio.run`` at Ctrl-C. Whoever does that often cancels all
tasks of the loop together, those of the topology as well, and these must not take it for a fault (law N3). So it
matters who has cancelled the body, and asyncio only counts how often: the crash remembers that it has done so, and the
block how often the body had been cancelled before it was entered.
"""

from __future__ import annotations

import asyncio
from typing import Any

from stormlet.errors import TopologyCrashed
from stormlet.runtime.context import CrashSite


class Block:
    """The block of one run. To be made by the task that enters it."""

    def __init__(self, topology: str, loop: asyncio.AbstractEventLoop) -> None:
        self.crash: TopologyCrashed | None = None
        """The first crash of the run, if there was one."""
        self.crash_known: asyncio.Future[None] = loop.create_future()
        """Done at the first crash; cancelled if the run ends without one."""
        self._topology = topology
        self._body: asyncio.Task[Any] | None = asyncio.current_task()
        self._cancelled_before = 0 if self._body is None else self._body.cancelling()
        self._entered = False
        self._cancelled_by_crash = False
        self._own_cancellations = 0
        """Those of the crash that were not taken back."""

    def enter(self) -> None:
        """The tasks have started: from now on a crash cancels the body."""
        self._entered = True

    def leave(self) -> None:
        """The body is over, and what a crash has done to it is undone."""
        self._entered = False
        # Else the cancellation would still count when the host, which catches the crash, leaves a timeout of its
        # own.
        if self._own_cancellations and self._body is not None:
            self._own_cancellations = 0
            self._body.uncancel()

    @property
    def abandoned(self) -> bool:
        """True if it was entered, as in a cell of a notebook, by a task that has ended: nobody may ever leave it."""
        return self._entered and self._body is not None and self._body.done()

    def host_leaves(self) -> bool:
        """Say if the body is being cancelled by others: they may cancel all else, too."""
        body = self._body
        return body is not None and not body.done() and self._is_cancelled

    @property
    def cancelled_by_crash_alone(self) -> bool:
        """True if the crash has cancelled the body, and nobody else has."""
        return self._cancelled_by_crash and not self._is_cancelled

    @property
    def _is_cancelled(self) -> bool:
        """True if others have done that since it was entered; the body may have caught an earlier one."""
        before = self._cancelled_before + self._own_cancellations
        return self._body is not None and self._body.cancelling() > before

    def crashed(self, site: CrashSite, error: BaseException) -> None:
        """User code has raised where no tuple answers for it."""
        if self.crash is None:
            # Of the first crash alone: others follow from it, as tasks come to their end in a broken topology.
            crash = TopologyCrashed(self._topology, site.task.name, site.method, site.restarts, site.way_out)
            self._crash(crash, error)

    def part_failed(self, what: str, part: str, error: BaseException) -> None:
        """A part of the run that is no task has failed for a reason of its surroundings, such as a full disk."""
        self._crash(TopologyCrashed(self._topology, part, what), error)

    def engine_failed(self, part: str, error: BaseException | None) -> None:
        """A part of the engine itself has raised (law N2)."""
        self._crash(TopologyCrashed(self._topology, "the engine", f"the {part}"), error)

    def _crash(self, crash: TopologyCrashed, error: BaseException | None) -> None:
        if self.crash is not None:
            return
        self.crash = crash
        # By hand, as nothing is raised here: the host gets it where it leaves the block.
        self.crash.__cause__ = error
        # It was cancelled if the run has ended meanwhile; then nobody waits for it any more.
        if not self.crash_known.done():
            self.crash_known.set_result(None)
        if self._entered and self._body is not None and not self._body.done():
            self._cancelled_by_crash = True
            self._own_cancellations = 1
            self._body.cancel()
