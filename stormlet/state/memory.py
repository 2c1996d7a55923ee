"""The store of topologies that keep nothing, and of simulated time."""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter

from stormlet.core.state.commits import Append, Column, Commit, Rows, Shape, StateId, Stored, TableRows
from stormlet.errors import StateUnusable
from stormlet.state.refusals import refuse_gap, refuse_unkept
from stormlet.state.retention import first_kept

PLACE = "the state in memory"


class MemoryStore:
    """Keeps epochs in dicts, by the rules of a file: it is a :class:`~stormlet.core.state.commits.Store`."""

    def __init__(self, line: str | None = None) -> None:
        """Begin with nothing. The line is random, as committers may know the epochs of an earlier run; a simulation
        gives its own."""
        self._line = secrets.token_hex(8) if line is None else line
        self._closed: dict[int, float | None] = {0: None}
        """The epochs that can be read, from the first one to the last."""
        self._positions: dict[str, list[tuple[int, bytes]]] = {}
        self._shapes: dict[StateId, Shape] = {}
        self._log: dict[StateId, list[tuple[int, int, bytes]]] = {}
        """The rows of each state: number, epoch and blob."""
        self._rows = 0
        self._begun: dict[StateId, list[tuple[int, int]]] = {}
        """The rows with which rounds of each state have begun: number and epoch."""
        self._outbox: list[Rows] = []
        self._letters: list[tuple[int, bytes]] = []
        self.tables: dict[str, dict[tuple[Column, ...], tuple[Column, ...]]] = {}
        """The rows of tables beside the state, by name of the table and by key."""

    @property
    def _first(self) -> int:
        return next(iter(self._closed))

    @property
    def _last(self) -> int:
        return next(reversed(self._closed))

    def load(self) -> Stored:
        """All that is durable."""
        return self._stored(self._last)

    def declare(self, shapes: Mapping[StateId, Shape]) -> None:
        """Note the types that the program has declared."""
        self._shapes.update(shapes)

    def commit(self, commit: Commit) -> None:
        """Keep this epoch. Raises :class:`~stormlet.errors.StateUnusable` if it is not the next one."""
        refuse_gap(PLACE, commit.epoch, self._last)
        self.note_delivered(commit.delivered, commit.letters_delivered)
        for each in commit.tables:
            self._put(each)
        for task, position in commit.positions.items():
            self._positions.setdefault(task, []).append((commit.epoch, position))
        self._outbox.extend(commit.outbox)
        self._letters.extend((commit.epoch, letter) for letter in commit.letters)
        self._closed[commit.epoch] = commit.closed_at
        for append in commit.appends:
            self._append(commit.epoch, append)
        needed = self._first_needed(commit)
        dropped = [self._drop_before(each.state, needed) for each in commit.appends if each.begins_round]
        self._forget(first_kept(commit.epoch, needed, dropped=any(dropped)))

    def _append(self, epoch: int, append: Append) -> None:
        self._rows += 1
        if append.begins_round:
            self._begun.setdefault(append.state, []).append((self._rows, epoch))
        self._log.setdefault(append.state, []).append((self._rows, epoch, append.blob))

    def _first_needed(self, commit: Commit) -> int:
        """The first epoch that must be readable: the last one that was closed before the history began."""
        if not commit.history:
            return commit.epoch
        since = commit.closed_at - commit.history
        return next(epoch for epoch, at in self._closed.items() if at is not None and at > since) - 1

    def _drop_before(self, state: StateId, epoch: int) -> bool:
        """Drop the rows that neither this epoch nor a later one needs. Returns True if there were any."""
        begun, rows = self._begun[state], self._log[state]
        superfluous = bisect_left(rows, self._first_row(state, epoch), key=itemgetter(0))
        del rows[:superfluous]
        del begun[: max(bisect_right(begun, epoch, key=itemgetter(1)) - 2, 0)]
        return superfluous > 0

    def _first_row(self, state: StateId, epoch: int) -> int:
        """The row from which on a state is whole after an epoch: the beginning of the last round but one."""
        begun = self._begun.get(state, ())
        count = bisect_right(begun, epoch, key=itemgetter(1))
        return begun[count - 2][0] if count > 1 else 0

    def _put(self, rows: TableRows) -> None:
        names = [name for name, _ in rows.table.columns]
        kept = self.tables.setdefault(rows.table.name, {})
        for row in rows.rows:
            key = tuple(row[names.index(each)] for each in rows.table.key) or (len(kept),)
            kept[key] = tuple(row)

    def note_delivered(self, rows: Sequence[tuple[str, int]], letters: int) -> None:
        """Note what committers and the sink of dead letters have had."""
        for committer, epoch in rows:
            self._outbox = [
                each for each in self._outbox if each.committer != committer or each.epoch > epoch
            ]
        self._letters = [letter for letter in self._letters if letter[0] > letters]

    def _forget(self, first: int) -> None:
        """Leave nothing that only epochs before this one have."""
        for epoch in range(self._first, first):
            del self._closed[epoch]
        if first > 0:
            for positions in self._positions.values():
                del positions[: max(_count_until(positions, first) - 1, 0)]

    def at(self, epoch: int) -> Stored:
        """All that was durable after this epoch, without what was delivered since."""
        refuse_unkept(PLACE, epoch, self._first, self._last)
        return self._stored(epoch)

    def _stored(self, epoch: int) -> Stored:
        states = {
            state: _between(rows, self._first_row(state, epoch), epoch) for state, rows in self._log.items()
        }
        return Stored(
            self._line,
            epoch,
            self._closed[epoch],
            {
                task: positions[count - 1][1]
                for task, positions in self._positions.items()
                if (count := _count_until(positions, epoch))
            },
            dict(self._shapes),
            {state: blobs for state, blobs in states.items() if blobs},
            tuple(sorted((rows for rows in self._outbox if rows.epoch <= epoch), key=_epoch_of)),
            tuple(letter for letter in self._letters if letter[0] <= epoch),
        )

    def backup(self, path: str) -> None:
        """Raise :class:`~stormlet.errors.StateUnusable`, as there is no file to copy."""
        raise StateUnusable(
            f"{PLACE} cannot be saved to {path}; run the topology with state=, the path of a file"
        )

    def close(self) -> None:
        """Nothing is to be let go."""


def _between(rows: Sequence[tuple[int, int, bytes]], first: int, epoch: int) -> tuple[bytes, ...]:
    begin = bisect_left(rows, first, key=itemgetter(0))
    return tuple(blob for _, _, blob in rows[begin : bisect_right(rows, epoch, key=itemgetter(1))])


def _count_until(positions: Sequence[tuple[int, bytes]], epoch: int) -> int:
    return bisect_right(positions, epoch, key=itemgetter(0))


def _epoch_of(rows: Rows) -> int:
    return rows.epoch
