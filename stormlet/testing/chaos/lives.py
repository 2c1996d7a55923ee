"""The lives of a simulated run with ``state=``: it is killed at any step, and begins again with what its store has.

A kill leaves nothing behind but the store, which is in memory, and what user code has done to the world outside. The
coroutines of the life that has ended are cancelled; whatever these do then reaches no store, and no ``cleanup``,
``close`` or ``commit`` is called.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import Protocol

from stormlet.core.state.commits import Commit, Shape, StateId, Stored
from stormlet.errors import StateUnusable
from stormlet.state.memory import MemoryStore
from stormlet.testing.chaos.committing import Commits
from stormlet.testing.chaos.faults import FaultKind

STORE = "store"
"""The place of its faults."""


class Crash(BaseException):
    """The process is killed: no exception of any life is to take it for one of its own."""


class Outlived:
    """All that outlives a life."""

    def __init__(self, *, keeps_rows: bool = True) -> None:
        """``keeps_rows`` has all rows gathered that committers have had."""
        self.store = MemoryStore()
        self.commits = Commits(keeps_rows=keeps_rows)
        self.lives = 0
        """Those that have ended before their time."""
        self.time = 0.0
        """The time at which the last one has ended."""
        self.given: dict[Hashable, None] = {}
        """The values that spouts have emitted."""
        self.letters = 0
        """Dead letters."""


class Disturbing(Protocol):
    """The faults of a life."""

    def strikes(self, kind: FaultKind, place: str) -> Random | None: ...
    def note(self, text: str, *values: object) -> None: ...


class Hold:
    """One life's hold on the store, which ends with it. Writes fail, before they are done or after it."""

    def __init__(self, outlived: Outlived, run: Disturbing) -> None:
        self._store = outlived.store
        self._commits = outlived.commits
        self._run = run
        self.is_over = False
        self.has_failed = False

    def load(self) -> Stored:
        """See :meth:`stormlet.core.state.commits.Store.load`."""
        return self._store.load()

    def declare(self, shapes: Mapping[StateId, Shape]) -> None:
        """See :meth:`stormlet.core.state.commits.Store.declare`."""
        self._store.declare(shapes)

    def commit(self, commit: Commit) -> None:
        """See :meth:`stormlet.core.state.commits.Store.commit`."""
        if self.is_over:
            return
        random = self._run.strikes(FaultKind.WRITE, STORE)
        if random is not None and random.random() < 0.5:
            self._fail(commit, "before it is done")
        self._store.commit(commit)
        self._commits.durable(commit)
        if random is not None:
            self._fail(commit, "after it was done")

    def _fail(self, commit: Commit, when: str) -> None:
        self._run.note("FAULT: the write of epoch {} fails {}", commit.epoch, when)
        self.has_failed = True
        raise StateUnusable(f"the write of epoch {commit.epoch} was to fail {when}")

    def note_delivered(self, rows: Sequence[tuple[str, int]], letters: int) -> None:
        """See :meth:`stormlet.core.state.commits.Store.note_delivered`."""
        if not self.is_over:
            self._store.note_delivered(rows, letters)

    def at(self, epoch: int) -> Stored:
        """See :meth:`stormlet.core.state.commits.Store.at`."""
        return self._store.at(epoch)

    def backup(self, path: str) -> None:
        """See :meth:`stormlet.core.state.commits.Store.backup`."""
        self._store.backup(path)

    def close(self) -> None:
        """The next life has the store."""
