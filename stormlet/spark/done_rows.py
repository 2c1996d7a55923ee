"""Which rows of a source are done: of each partition, how many of its first ones without a gap."""

from __future__ import annotations

from collections.abc import Mapping

from stormlet.spark.packing import ALL


class DoneRows:
    """The account of the rows that were emitted, in order, and settled, in any order.

    What is kept is the messages that are open: as many as are pending, however many were settled after the oldest of
    these.
    """

    def __init__(self, done: Mapping[int, int]) -> None:
        self._done = dict(done)
        self._begun: dict[int, int] = {}
        self._emitted: dict[int, int] = {}
        self._open: dict[int, dict[int, None]] = {}

    def emitted(self, partition: int, row: int, rows: int) -> None:
        """So many rows, from this one on, were emitted as one message."""
        self._begun.setdefault(partition, row)
        self._emitted[partition] = row + rows
        self._open.setdefault(partition, {})[row] = None

    def settled(self, partition: int, row: int) -> None:
        """The message that begins with this row is done."""
        del self._open[partition][row]

    def prefixes(self, read: int) -> dict[int, int]:
        """Partition -> how many of its first rows are done. Of the partitions before ``read`` all rows were
        emitted: where none is open they are all done."""
        for partition, begun in self._begun.items():
            prefix = next(iter(self._open[partition]), self._emitted[partition])
            if prefix > begun:
                self._done[partition] = prefix
        for partition in range(read):
            if not self._open.get(partition):
                for account in (self._begun, self._emitted, self._open):
                    account.pop(partition, None)
                self._done[partition] = ALL
        return dict(self._done)
