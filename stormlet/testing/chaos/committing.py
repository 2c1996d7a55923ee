"""Committers, watched over all lives of a run: each epoch comes in its order, until its ``commit`` has returned, and
with equal rows each time (law X9)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence

from stormlet.core.state.commits import Commit
from stormlet.testing.chaos.data import frozen

Violation = Callable[..., None]
"""Notes that the law was broken: a text with a ``{}`` for each value, and the values."""


class Commits:
    """The epochs of all committers."""

    def __init__(self, *, keeps_rows: bool = True) -> None:
        """``keeps_rows`` has all rows gathered that committers have had."""
        self._keeps_rows = keeps_rows
        self._due: defaultdict[str, dict[int, None]] = defaultdict(dict)
        """Durable epochs that a committer has not had, where a store is watched."""
        self._rows: dict[str, tuple[int, Sequence[Hashable]]] = {}
        """The last epoch of each committer."""
        self._had: dict[str, int] = {}
        self.rows: defaultdict[str, Counter[Hashable]] = defaultdict(Counter)
        """All that committers have had, by committer."""
        self._may_repeat = False

    def durable(self, commit: Commit) -> None:
        """An epoch is durable, with rows that are to be delivered."""
        for rows in commit.outbox:
            self._due[rows.committer][rows.epoch] = None

    def killed(self) -> None:
        """The process was killed: an epoch that was had last may come again, if that was not noted."""
        self._may_repeat = True

    def called(self, committer: str, epoch: int, rows: Sequence[object], violation: Violation) -> None:
        """The ``commit`` of a committer is called."""
        images = list(map(frozen, rows))
        last, known = self._rows.get(committer, (0, ()))
        if epoch == last and known != images:
            violation("{} gets epoch {} again with other rows", committer, epoch)
        if not self._is_next(committer, epoch):
            violation("{} gets epoch {}, which is not its next one", committer, epoch)
        self._rows[committer] = epoch, images

    def _is_next(self, committer: str, epoch: int) -> bool:
        had = self._had.get(committer, 0)
        if epoch == had:
            return self._may_repeat
        due = self._due.get(committer)
        return epoch > had if due is None else epoch == next(iter(due), None)

    def had(self, committer: str, epoch: int) -> None:
        """It has returned."""
        if self._keeps_rows and epoch > self._had.get(committer, 0):
            self.rows[committer].update(self._rows[committer][1])
        self._had[committer] = epoch
        self._due.get(committer, {}).pop(epoch, None)

    def check_all_had(self, violation: Violation) -> None:
        """The run has come to its end."""
        for committer, due in self._due.items():
            for epoch in due:
                violation("{} never got epoch {}", committer, epoch)
