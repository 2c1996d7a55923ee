"""The time for another round over the log of a state: see :mod:`~stormlet.core.state.states`.

Theory of operation
-------------------
A round writes all live entries once more, so that the store can drop what is older: what changes have replaced. It
writes ``rewrite`` bytes beside each byte of changes, so that one over ``live`` bytes lasts for ``live / rewrite`` bytes
of changes. The next one begins when that much has been replaced. Where keys are only added, the log has each entry
once, and a round would free nothing.

What a change has replaced is estimated, without a look at the old values: by its own bytes, but for the part of its
entries by which there are more than before; and by the mean size of a live entry, as a deletion or a small value may
replace a large one. The larger of the two counts: a round too many costs less than a log of what is long gone. Both are
wrong where large values change beside many small ones that are new. So whatever the estimate says, a round begins when
changes are :data:`MOST_CHANGES` times as many bytes as the last round has written.

With a ``ttl`` rounds follow each other, as they free what is too old (law K6).
"""

from __future__ import annotations

from typing import Final

LEAST_LOG = 4 << 20
"""Bytes of changes from the beginning of a round to that of the next one, at least."""
MOST_CHANGES: Final = 4.0
"""A round begins after this many times the bytes of the last one, whatever the estimate says."""


class Rounds:
    """Bytes of the log of one state, by what was written."""

    def __init__(self, rewrite: float, *, frees_old: bool) -> None:
        """``frees_old`` says that rounds free what is too old by its ``ttl``."""
        self.changed = 0
        """Bytes of changes since the last round has begun; of the whole log, before there was one."""
        self._replaced = 0.0
        """The bytes that these have replaced, about."""
        self._added = 0.0
        """The bytes by which the live entries have become more meanwhile, about; negative for less."""
        self._live = 0.0
        """Bytes of the live entries, about."""
        self._entries = 0
        """Their number; entries that a round has left out as too old are still counted."""
        self._written = 0
        """Bytes that the last round has written."""
        self._writing = 0
        """The same of the one that is under way."""
        self._rewrite = rewrite
        self._frees_old = frees_old

    def load(self, size: int, *, live: float, entries: int) -> None:
        """Note what a run begins with: the bytes of its log, and those of its live entries, about, with their
        number."""
        self.changed += size
        self._replaced += size
        self._live = live
        self._entries = entries

    def change(self, size: int, *, entries: int, more: int) -> None:
        """Note so many bytes of changes of so many entries, and by how many there are more now; negative for fewer."""
        mean = self._live / self._entries if self._entries else 0.0
        added = size * more / entries if more > 0 else mean * more
        self.changed += size
        self._replaced += max(size - max(added, 0.0), mean * (entries - more))
        self._added += added
        self._live = max(0.0, self._live + added)
        self._entries = max(0, self._entries + more)

    @property
    def is_due(self) -> bool:
        """True if it is time for the next round, where none is under way."""
        if self.changed < LEAST_LOG:
            return False
        worth = self._rewrite * self._replaced >= self._live
        return worth or self._frees_old or self.changed >= MOST_CHANGES * max(self._written, LEAST_LOG)

    def begin(self) -> None:
        """A round begins."""
        self.changed, self._replaced, self._added = 0, 0.0, 0.0

    def write(self, size: int) -> None:
        """The round has written so many bytes."""
        self._writing += size

    def end(self) -> None:
        """The round is over."""
        self._written, self._writing = self._writing, 0
        self._live = max(0.0, self._written + self._added)
