"""The epochs that can still be read after a commit: the same in each store."""

from __future__ import annotations

KEPT_EPOCHS = 1000
"""The number of epochs that can be read at least, unless a round ends among them."""
TRIMMED_EVERY = 100
"""Epochs from one look for those that are too many to the next."""


def first_kept(epoch: int, *, dropped: bool) -> int:
    """The first epoch that can be read after this commit, as far as the commit has a say in it.

    ``dropped`` says that it has removed rows of a state. All states before it are incomplete then.
    """
    if dropped:
        return epoch
    return epoch - KEPT_EPOCHS if epoch % TRIMMED_EVERY == 0 else 0
