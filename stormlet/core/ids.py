"""Random 64-bit ids for roots and edges, from one seedable source per task (law L1, L16).

The ids of a source are the output of its :class:`random.Random`, 64 bits each. Interpreted, they are taken from it in
blocks. Compiled, :class:`Twister` goes on in C from the state of the generator, and gives the same ids for a ninth of
the price, as no integer of Python is made of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Final

from stormlet.core.directives import is_extension

IS_COMPILED: Final = is_extension(__file__)
if not TYPE_CHECKING and IS_COMPILED:
    import cython
else:
    from stormlet.core import directives as cython

BLOCK = 512
"""Ids that are drawn from the generator at once. One by one they cost three times as much."""

NO_ID = bytes(8)
"""The bytes of the id 0, which is never given."""

# Of MT19937. Declared as integers of C, as Cython takes literals of 32 bits for objects.
WORDS: Final = 624
MIDDLE: Final = 397
UPPER: Final = 0x80000000
LOWER: Final = 0x7FFFFFFF
TWIST: Final = 0x9908B0DF
MASK_B: Final = 0x9D2C5680
MASK_C: Final = 0xEFC60000


def next_id(
    ids: Iterator[int],
) -> int:  # pragma: no cover - the builtin stands for it where it is not compiled
    """Return the next id of a source's iterator. Compiled, no integer of Python is made of it."""
    if type(ids) is Twister:
        twister = ids
        return twister.draw()
    return next(ids)


if not cython.compiled:  # without a call of ours
    globals()["next_id"] = next


class IdSource:
    """An endless stream of random non-zero 64-bit ids.

    Zero is left out, because ``x ^ 0 == x``: a tuple with edge id 0 would be invisible to the ledger (seed
    004, "ID generation").
    """

    __slots__ = ("_drawn",)

    def __init__(self, random: Random) -> None:
        self._drawn: Iterator[int]
        if IS_COMPILED and type(random) is Random:
            self._drawn = Twister(random.getstate()[1])
        else:
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


class Twister:
    """Python's generator, MT19937 of Matsumoto and Nishimura (1998), as an iterator over the ids it gives."""

    __slots__ = ("_place", "_words")

    def __init__(self, state: Sequence[int]) -> None:
        """Goes on from the second part of :meth:`random.Random.getstate`."""
        if not cython.compiled:
            self._words = [0] * WORDS
        for place in range(WORDS):
            self._words[place] = state[place]
        self._place = state[WORDS]

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return self.draw()

    def draw(self) -> int:
        """Return the next id."""
        while True:
            low = self._word()
            high = self._word()
            if low or high:
                return high << 32 | low

    def _word(self) -> int:
        if self._place == WORDS:
            self._twist()
        word = self._words[self._place]
        self._place += 1
        word ^= word >> 11
        word ^= word << 7 & MASK_B
        word ^= word << 15 & MASK_C
        return word ^ word >> 18

    def _twist(self) -> None:
        words = self._words
        for place in range(WORDS):
            following = place + 1 if place + 1 < WORDS else 0
            middle = place + MIDDLE if place + MIDDLE < WORDS else place + MIDDLE - WORDS
            bits = words[place] & UPPER | words[following] & LOWER
            words[place] = words[middle] ^ bits >> 1 ^ (TWIST if bits & 1 else 0)
        self._place = 0


def shard_of(root: int, ackers: int) -> int:
    """Return the index of the acker that owns the tree of this root (law L6)."""
    return root % ackers  # roots are random, so every acker gets its share
