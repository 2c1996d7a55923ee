"""The rows that a commit makes superfluous, and the epochs that can still be read: the same in each store."""

from __future__ import annotations

from stormlet.core.commits import StateId

KEPT_EPOCHS = 1000
"""The number of epochs that can be read at least, unless a round ends among them."""
TRIMMED_EVERY = 100
"""Epochs from one look for those that are too many to the next."""


class Rounds:
    """The rounds over all keys that this run has begun, by their first rows.

    Rounds of earlier runs do not count: the last of them may have ended in its midst, and then what is older than its
    beginning still says something.
    """

    def __init__(self, begun: dict[StateId, int] | None = None) -> None:
        self._begun = {} if begun is None else begun

    def copy(self) -> Rounds:
        """The same, to be changed by a commit that may fail."""
        return Rounds(dict(self._begun))

    def begin(self, state: StateId, row: int) -> int:
        """Note that a round begins with this row. Return the first row of the round before, which has written all keys
        that are alive: older ones are superfluous. 0 if there was none."""
        before = self._begun.get(state, 0)
        self._begun[state] = row
        return before


def first_kept(epoch: int, *, dropped: bool) -> int:
    """The first epoch that can be read after this commit, as far as the commit has a say in it.

    ``dropped`` says that it has removed rows of a state. All states before it are incomplete then.
    """
    if dropped:
        return epoch
    return epoch - KEPT_EPOCHS if epoch % TRIMMED_EVERY == 0 else 0
