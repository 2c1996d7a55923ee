"""Random 64-bit ids for roots and edges, from one seedable source per task (law L1, L16)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import chain
from random import Random

BLOCK = 512
"""Ids that are drawn from the generator at once. One by one they cost three times as much."""

NO_ID = bytes(8)
"""The bytes of the id 0, which is never given."""


class IdSource:
    """An endless stream of random non-zero 64-bit ids.

    Zero is left out, because ``x ^ 0 == x``: a tuple with edge id 0 would be invisible to the ledger (seed
    004, "ID generation").
    """

    __slots__ = ("_drawn",)

    def __init__(self, random: Random) -> None:
        self._drawn = chain.from_iterable(_blocks(random))

    def __iter__(self) -> Iterator[int]:
        return self._drawn


def _blocks(random: Random) -> Iterator[Iterator[int]]:
    while True:
        drawn = random.randbytes(8 * BLOCK)
        # One conversion for the whole block, in the byte order of the machine: ids never leave the process.
        ids = array("Q", drawn).tolist()
        # Eight zero bytes in a row are rare, and looking for them is much cheaper than testing every id. They may also
        # lie across two ids: then the filter finds nothing, which costs time only.
        yield iter(ids) if NO_ID not in drawn else filter(None, ids)


def shard_of(root: int, ackers: int) -> int:
    """Return the index of the acker that owns the tree of this root (law L6)."""
    return root % ackers  # roots are random, so every acker gets its share
