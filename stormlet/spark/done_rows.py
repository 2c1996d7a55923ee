"""Which rows of a source are done: of each partition, how many of its first ones without a gap."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from stormlet.spark.packing import ALL


class DoneRows:
    """The account of the rows that were emitted, in order, and settled, in any order.

    What is kept is the rows between the first one that is not done and the last one emitted: as many as are
    pending, and those that were settled after the oldest of these.
    """

    def __init__(self, done: Mapping[int, int]) -> None:
        self._done = dict(done)
        self._emitted: dict[int, deque[tuple[int, int]]] = {}
        self._settled: dict[int, set[int]] = {}

    def emitted(self, partition: int, row: int, rows: int) -> None:
        """So many rows, from this one on, were emitted as one message."""
        self._emitted.setdefault(partition, deque()).append((row, rows))

    def settled(self, partition: int, row: int) -> None:
        """The message that begins with this row is done."""
        settled = self._settled.setdefault(partition, set())
        settled.add(row)
        emitted = self._emitted[partition]
        while emitted and emitted[0][0] in settled:
            first, rows = emitted.popleft()
            settled.remove(first)
            self._done[partition] = first + rows

    def prefixes(self, read: int) -> dict[int, int]:
        """Partition -> how many of its first rows are done. Of the partitions before ``read`` all rows were
        emitted: where none is open they are all done."""
        for partition in range(read):
            if not self._emitted.get(partition):
                self._emitted.pop(partition, None)
                self._settled.pop(partition, None)
                self._done[partition] = ALL
        return dict(self._done)
