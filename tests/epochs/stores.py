"""A store in memory that tests look into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormlet.core.state.commits import Commit, Shape, StateId, Stored
from stormlet.errors import StateUnusable


class Kept:
    """Keeps every commit; what a run has left is what the next one begins with."""

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.fails = False
        self.closed = 0
        self.delivered = 0

    @property
    def epochs(self) -> list[int]:
        """The numbers of all commits."""
        return [each.epoch for each in self.commits]

    def load(self) -> Stored:
        positions: dict[str, bytes] = {}
        states: dict[StateId, list[bytes]] = {}
        for commit in self.commits:
            positions.update(commit.positions)
            for append in commit.appends:
                states.setdefault(append.state, []).append(append.blob)
        letters = [
            (commit.epoch, each)
            for commit in self.commits
            for each in commit.letters
            if commit.epoch > self.delivered
        ]
        return Stored("line", len(self.commits), positions=positions, states=states, letters=letters)

    def declare(self, shapes: Mapping[StateId, Shape]) -> None:
        pass

    def commit(self, commit: Commit) -> None:
        if self.fails:
            raise StateUnusable("the disk is full")
        assert commit.epoch == len(self.commits) + 1
        self.commits.append(commit)
        self.delivered = max(self.delivered, commit.letters_delivered)

    def note_delivered(self, rows: Sequence[tuple[str, int]], letters: int) -> None:
        self.delivered = max(self.delivered, letters)

    def at(self, epoch: int) -> Stored:
        raise NotImplementedError

    def backup(self, path: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.closed += 1
