"""The account of a run on Spark: the law's ledger as one XOR over the whole cluster (law L2).

Theory of operation
-------------------
In process the acker XORs the id of each tuple when it is created and when it is acked, by root, and zero means done.
Here each partition does so for all of its tuples together, and hands one line to the driver. A tuple that fails for
good is XORed out like one that was settled, and named in a row of its own. So the XOR of all lines is zero whatever
has failed, and every message that is not named is acked.

What Spark may do to rows, and what shows it:

================================================  ===================================================
a chunk is lost                                   its words were emitted, and never settled
a chunk comes twice                               its words were settled twice; the numbers differ, too
a task's output is lost whole                     its line is missing
two attempts are mixed that emit other numbers    words are left over
two attempts are mixed that emit other values     hashes are left over
a chunk comes to another task                     its hash, which has its address, is left over
================================================  ===================================================

The lines say that something is open, and cost eight bytes for each partition. The messages that are open are known
only from the ledger by root (:mod:`stormlet.spark.engine.partition.roots`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from random import Random

import msgspec

from stormlet.spark.engine.partition.rows import Row, unpacked, xor_of
from stormlet.spark.engine.planning.numbering import Place


class Line(msgspec.Struct, frozen=True):
    """The tuples that one partition has emitted and settled."""

    place: Place
    words: int
    """The XOR of the words of all tuples that it has emitted or settled."""
    hashes: int
    """The XOR of the hashes of all chunks that it has written or read."""
    emitted: int
    """The number of tuples that it has sent to other stages."""
    settled: int
    """The number of tuples from other stages that it has settled."""
    messages: int = 0
    """The number of messages that its spout has emitted."""


class Account:
    """The running account of one partition."""

    def __init__(self, place: Place, *, by_root: bool = False) -> None:
        """``by_root`` has the words of tuples depend on their chunk's content, as the ledger by root needs it."""
        self._place = place
        self._keyed = by_root
        self._words = 0
        self._hashes = 0
        self._emitted = 0
        self._settled = 0
        self.messages = 0

    def wrote(self, row: Row) -> Row:
        """A chunk leaves, with its tuples; return it with the words that they count with."""
        counted = self._moved(row)
        self._words ^= xor_of(counted.words)
        self._emitted += len(counted.words) // 8
        return counted

    def read(self, row: Row) -> Row:
        """A chunk has come; return it with the words that its tuples are to be settled with."""
        return self._moved(row)

    def settled(self, words: bytes, messages: Sequence[int], counts: Sequence[int]) -> None:
        """The tuples with these words were acked, or given up. They belong to these messages, one after another:
        each to as many as ``counts`` says, or to one if that is empty."""
        self._words ^= xor_of(words)
        self._settled += len(words) // 8

    def settled_one(self, word: int, messages: Sequence[int]) -> None:
        """The tuple with this word, of these messages, was acked, or given up."""
        self._words ^= word
        self._settled += 1

    def arrived(self, row: Row) -> None:
        """A chunk has come to where all of its tuples count as settled."""
        read = self.read(row)
        self.settled(read.words, unpacked(row.roots), unpacked(row.counts))

    def rows(self, least: int) -> Iterator[Row]:
        """Iterate over rows for the ledger by root, if there is one and at least so many entries are in them."""
        return iter(())

    def _moved(self, row: Row) -> Row:
        hashed = row.hash
        self._hashes ^= hashed
        return keyed(row, hashed) if self._keyed else row

    def line(self) -> Line:
        """Return all of it."""
        return Line(self._place, self._words, self._hashes, self._emitted, self._settled, self.messages)


def keyed(row: Row, hashed: int) -> Row:
    """Return a chunk whose words are mixed with others that follow from its hash: if anything in it is altered, the
    words of all its tuples are."""
    mixed = int.from_bytes(row.words, "little") ^ int.from_bytes(
        Random(hashed).randbytes(len(row.words)), "little"
    )
    return msgspec.structs.replace(row, words=mixed.to_bytes(len(row.words), "little"))


def added(place: Place, lines: Iterable[Line]) -> Line:
    """Return one line in place of several."""
    total = Line(place, 0, 0, 0, 0)
    for line in lines:
        total = Line(
            place,
            total.words ^ line.words,
            total.hashes ^ line.hashes,
            total.emitted + line.emitted,
            total.settled + line.settled,
            total.messages + line.messages,
        )
    return total


def differences(lines: Iterable[Line], partitions: Sequence[int]) -> Sequence[str]:
    """Return what does not add up, in words; nothing if every message that is not named is acked. ``partitions`` are
    those of each stage."""
    lines = list(lines)
    found = list[str]()
    expected = {Place(stage, each) for stage, count in enumerate(partitions) for each in range(count)}
    places = [line.place for line in lines]
    missing = len(expected - set(places))
    if missing:
        found.append(f"{missing} of {len(expected)} tasks have left no line in the ledger")
    unplanned = sum(place.stage < len(partitions) for place in set(places) - expected)
    if unplanned:
        found.append(f"{unplanned} lines are of tasks that are not in the plan")
    if len(places) > len(set(places)):
        found.append(f"{len(places) - len(set(places))} lines of tasks came twice")
    emitted, settled = sum(line.emitted for line in lines), sum(line.settled for line in lines)
    if emitted != settled:
        found.append(f"{emitted:,} tuples were sent from stage to stage, and {settled:,} were settled")
    elif reduce(int.__xor__, (line.words for line in lines), 0):
        found.append("the tuples that were settled are not those that were sent")
    if reduce(int.__xor__, (line.hashes for line in lines), 0):
        found.append("chunks that were read differ from those that were written")
    return found
