"""The time for another round over the log of a state: see :mod:`~stormlet.core.state.states`.

Theory of operation
-------------------
A round writes all live entries once more, so that the store can drop what is older. That frees what changes have
replaced: with ``rewrite`` bytes for each byte of changes, a round is worth it when as many bytes have been replaced as
the round before has let come in its course. Where keys only come and none changes, the log has each entry once, and a
round would free nothing.

What a change has replaced is estimated: by the bytes of an epoch, and the part of its entries by which there are more
than before. That is wrong where large values change beside small ones that are new. So whatever the estimate says, a
round begins when changes are :data:`MOST_CHANGES` times as many bytes as the last round has written.

With a ``ttl`` rounds follow each other, as they free what is too old (law K6).
"""

from __future__ import annotations

from typing import Final

LEAST_LOG = 4 << 20
"""Bytes of changes from the beginning of a round to that of the next one, at least."""
MOST_CHANGES: Final = 4.0


class Rounds:
    """Bytes of the log of one state, by what was written."""

    def __init__(self, rewrite: float, *, frees_old: bool) -> None:
        """``frees_old`` says that rounds free what is too old by its ``ttl``."""
        self.changed = 0
        """Bytes of changes since the last round has begun; of the whole log, before there was one."""
        self._added = 0.0
        """Of these, about, the bytes by which the live entries have become more."""
        self._written = 0
        """Bytes that the last round has written."""
        self._writing = 0
        """The same of the one that is under way."""
        self._rewrite = rewrite
        self._frees_old = frees_old

    def change(self, size: int, *, added: float = 0.0) -> None:
        """Note so many bytes of changes, after which there are more entries, by that part of those that have changed;
        negative for fewer."""
        self.changed += size
        self._added += size * added

    @property
    def is_due(self) -> bool:
        """True if it is time for the next round, where none is under way."""
        if self.changed < LEAST_LOG:
            return False
        worth = self._rewrite * (self.changed - self._added) >= self._written + self._added
        return worth or self._frees_old or self.changed >= MOST_CHANGES * max(self._written, LEAST_LOG)

    def begin(self) -> None:
        """A round begins."""
        self.changed, self._added = 0, 0.0

    def write(self, size: int) -> None:
        """The round has written so many bytes."""
        self._writing += size

    def end(self) -> None:
        """The round is over."""
        self._written, self._writing = self._writing, 0
