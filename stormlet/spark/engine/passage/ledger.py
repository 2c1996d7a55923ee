"""The ledger of a batch, when all stages have run: the lines of all partitions, and by root what is open.

Where a run does not add up nobody can say which outputs are right. So it fails, before anything is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from stormlet.errors import SparkFailed
from stormlet.spark.engine.partition.account import Line, differences
from stormlet.spark.engine.partition.merging import GROUP
from stormlet.spark.engine.partition.roots import ENTRIES, NOBODY, AccountByRoot
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.passage.arrow_rows import rows_of
from stormlet.spark.engine.passage.connect import frame_of_table
from stormlet.spark.engine.passage.messages import named
from stormlet.spark.engine.passage.reports import messages_in
from stormlet.spark.engine.passage.staging import Kept
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

FEW: Final = 5
"""Messages that an error names."""


class Ledger:
    """The ledger of one run."""

    def __init__(self, cluster: ClusterPlan, by_spark: Collection[str]) -> None:
        """``by_spark`` are the spouts that Spark reads."""
        self._cluster = cluster
        self._by_spark = by_spark

    def check(self, lines: Sequence[Line], messages_read: int, by_root: Kept | None) -> None:
        """Raise :class:`~stormlet.errors.SparkFailed` if it does not add up. The driver has read so many messages;
        ``by_root`` are the rows that the last stage has left, if the ledger by root is among them."""
        found = [*differences(lines, self._cluster.partitions)]
        elsewhere = self._cluster.partitions_of(self._by_spark)
        emitted = sum(line.messages for line in lines if line.place not in elsewhere)
        if emitted != messages_read:
            found.append(f"{messages_read:,} messages were read by the driver, and {emitted:,} emitted")
        if by_root is not None:
            found += self._open(with_members(open_roots(by_root.frame, self._cluster.driver), by_root))
        if found:
            named = 'ledger="roots" names the messages that are open. ' if by_root is None else ""
            raise SparkFailed(
                f"the ledger of topology {self._cluster.plan.description.name!r} does not add up: {'; '.join(found)}. "
                f"No sink was written. {named}A bolt that gives other outputs for the same inputs does this when "
                f"Spark repeats one of its tasks: make it repeatable, or run it again"
            )

    def _open(self, roots: DataFrame) -> Iterator[str]:
        """Iterate over what is open, in words."""
        first = [row["root"] for row in roots.orderBy("root").take(FEW + 1)]
        if NOBODY in first:
            yield "tuples that belong to no message are open"
        messages = [*map(self._named, (root for root in first if root != NOBODY))][:FEW]
        count = roots.where(roots["root"] != NOBODY).count() if messages else 0
        if count:
            which = "" if count == len(messages) else "the first "
            yield f"{count:,} {_messages(count)} open: {which}{', '.join(messages)}"

    def _named(self, root: int) -> str:
        try:
            spout, message = named(self._cluster, root, self._by_spark)
        except LookupError:
            return "one that no spout has emitted"
        if isinstance(message, int):
            return f"message {message} of {spout!r}"
        return f"row {message.row} of partition {message.partition} of {spout!r}"


def open_roots(rows: DataFrame, end: Place) -> DataFrame:
    """Return the roots that are open, in the column ``root``. ``rows`` are those that the last stage has left, whose
    chunks have come to their ``end``."""
    from pyspark.sql import functions as f

    kept = rows.where(rows["kind"].isin(int(Kind.CHUNK), int(Kind.LEDGER)))
    entries = kept.mapInArrow(Entering(end), "root bigint, word bigint, sign int")
    sums = entries.groupBy("root").agg(f.bit_xor("word").alias("xor"), f.sum("sign").alias("count"))
    return sums.where((sums["xor"] != 0) | (sums["count"] != 0)).select("root")


def with_members(roots: DataFrame, kept: Kept) -> DataFrame:
    """Return roots with messages in the place of groups, whose members are among what was kept."""
    groups = [row["root"] for row in roots.where(roots["root"] >= GROUP).toLocalIterator()]
    if not groups:
        return roots
    import pyarrow as pa

    messages = messages_in(groups, partial(kept.rows, Kind.MEMBERS))
    roots_of = pa.array([root for each in messages.values() for root in each], pa.int64())
    members = pa.Table.from_arrays([roots_of], names=["root"])
    return roots.where(roots["root"] < GROUP).union(frame_of_table(roots.sparkSession, members)).distinct()


class Entering(msgspec.Struct, frozen=True):
    """A function that makes columns of the entries of the ledger by root, those of chunks at their end included."""

    end: Place

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do so for one partition."""
        return map(columns_of, self._rows(row for batch in batches for row in rows_of(batch)))

    def _rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        account = AccountByRoot(self.end, self.end)
        for row in rows:
            if row.kind == Kind.LEDGER:
                yield row
            else:
                account.arrived(row)
                yield from account.rows(ENTRIES)
        yield from account.rows(1)


def columns_of(row: Row) -> pa.RecordBatch:
    """Return the entries of a row in columns. No entry is looked at by itself."""
    import pyarrow as pa

    packed = [
        pa.Array.from_buffers(pa.int64(), row.size, [None, pa.py_buffer(each)])
        for each in (row.roots, row.words)
    ]
    signs = pa.array([row.number] * row.size, pa.int32())
    return pa.RecordBatch.from_arrays([*packed, signs], names=["root", "word", "sign"])


def _messages(count: int) -> str:
    return "message is" if count == 1 else "messages are"
