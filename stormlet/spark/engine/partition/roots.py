"""The ledger of a run on Spark by root: it names the messages that are open (law L2).

Theory of operation
-------------------
The lines of all partitions say that a run does not add up, and cannot say where. On request each partition also leaves
entries for the driver. An entry is the root of a message with the word of one of its tuples, when the tuple leaves and
when it is settled. The words are not those in the chunk, but mixed with the chunk's hash
(:func:`~stormlet.spark.engine.partition.account.keyed`): so those of a chunk that was altered differ, too.

By root, the XOR of all entries is zero and as many were emitted as settled, if nothing of the message was lost, doubled
or altered. Both are needed: an entry that comes three times instead of once has the same XOR.

Sixteen bytes for each entry go to the run's folder, where Spark sums them up. Roots and words stay packed on the way:
for chunks whose tuples have a message each no entry is looked at by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from stormlet.spark.engine.partition.account import Account
from stormlet.spark.engine.partition.rows import Kind, Row, packed, unpacked
from stormlet.spark.engine.planning.numbering import Place

ENTRIES: Final = 1 << 16
"""Entries that are gathered into one row."""
NOBODY: Final = 0
"""The root of tuples that belong to no message."""


class AccountByRoot(Account):
    """The running account of one partition, with entries for each message."""

    def __init__(self, place: Place, end: Place) -> None:
        """``end`` is the address of the entries."""
        super().__init__(place, by_root=True)
        self._spread = place.partition
        self._end = end
        self._signed = {1: Entries(), -1: Entries()}

    def wrote(self, row: Row) -> Row:
        """See :meth:`Account.wrote`."""
        counted = super().wrote(row)
        self._signed[1].add(counted.words, unpacked(row.roots), unpacked(row.counts))
        return counted

    def settled(self, words: bytes, messages: Sequence[int], counts: Sequence[int]) -> None:
        """See :meth:`Account.settled`."""
        super().settled(words, messages, counts)
        self._signed[-1].add(words, messages, counts)

    def settled_one(self, word: int, messages: Sequence[int]) -> None:
        """See :meth:`Account.settled_one`."""
        super().settled_one(word, messages)
        self._signed[-1].add(packed([word]), messages, [len(messages)])

    def rows(self, least: int) -> Iterator[Row]:
        """See :meth:`Account.rows`."""
        for sign, entries in self._signed.items():
            if entries.count >= least:
                yield self._row(sign, entries)
                self._signed[sign] = Entries()

    def _row(self, sign: int, entries: Entries) -> Row:
        end = self._end
        return Row(
            Kind.LEDGER,
            end.stage,
            end.partition,
            producer=self._spread,  # in the stages that it passes by, a partition like this one has it
            number=sign,
            size=entries.count,
            roots=bytes(entries.roots),
            words=bytes(entries.words),
        )


class Entries:
    """Roots with a word each, packed."""

    def __init__(self) -> None:
        self.roots = bytearray()
        self.words = bytearray()

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self.roots) // 8

    def add(self, words: bytes, messages: Sequence[int], counts: Sequence[int]) -> None:
        """Add one for each message of each tuple."""
        if not counts:
            self.roots += packed(messages)
            self.words += words
            return
        left = iter(messages)
        for count, word in zip(counts, unpacked(words), strict=True):
            roots = list(islice(left, count)) or [NOBODY]
            self.roots += packed(roots)
            self.words += packed([word] * len(roots))
