"""The epochs that can still be read after a commit: the same in each store (law K8)."""

from __future__ import annotations

KEPT_EPOCHS = 1000
"""The number of epochs that can be read at least, unless a round ends among them."""
TRIMMED_EVERY = 100
"""Epochs from one look for those that are too many to the next."""


def first_kept(epoch: int, needed: int, *, dropped: bool) -> int:
    """The first epoch that can be read after this commit, as far as the commit has a say in it.

    ``needed`` is the first one that must be readable. ``dropped`` says that the commit has removed rows of a state:
    all states before ``needed`` are incomplete then.
    """
    if dropped:
        return needed
    return min(epoch - KEPT_EPOCHS, needed) if epoch % TRIMMED_EVERY == 0 else 0
