"""How much one acker has to do, as the spout tasks see it that give it more (law L13)."""

from __future__ import annotations

import sys


class AckerLoad:
    """The trees of one acker."""

    __slots__ = ("limit", "trees")

    def __init__(self, high_water: int | None) -> None:
        self.trees = 0
        """Open trees, and inits that are on their way."""
        self.limit = sys.maxsize if high_water is None else min(2 * high_water, sys.maxsize)
        """How many there may be."""
