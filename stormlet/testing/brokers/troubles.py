"""Faults of a twin, by a seed."""

from __future__ import annotations

from enum import StrEnum
from random import Random

import msgspec


class Trouble(StrEnum):
    """The kinds of faults that a broker has."""

    CUT = "cut"
    """Every connection is lost."""
    RESTART = "restart"
    """Every connection is lost, and for up to 20 seconds nobody gets another one."""
    REBALANCE = "rebalance"
    """Partitions are given to other members of the group."""
    TAKEN = "taken"
    """Partitions are taken away without a word before."""
    LEASE_LOST = "lease lost"
    """Leases end before their time."""
    DUPLICATE = "duplicate"
    """Messages that are under way are delivered once more."""
    SLOW = "slow"
    """For up to 20 seconds every answer takes up to 5 seconds."""
    SILENT = "silent"
    """For up to 30 seconds nothing comes through, and connections are not closed either."""


class Troubles(msgspec.Struct, frozen=True):
    """Faults at random moments."""

    seed: int
    every: float = 10.0
    """Seconds between two of them, about."""
    most: int = 10
    """After so many the broker is in peace."""
    kinds: tuple[Trouble, ...] = tuple(Trouble)

    def random(self) -> Random:
        """Return the randomness of these faults."""
        return Random(f"{self.seed}/troubles")
