"""The outcomes of all messages, and the dead letters, as DataFrames.

The driver knows how many messages each partition of a spout has had, and those few that were replayed or given up. All
others were acked at the first attempt. So their rows are made by Spark, when they are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stormlet.core.outcomes import DeadLetter, Failure
from stormlet.core.shortened import shown, text_of
from stormlet.report.letter_records import record_of
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.partition import root_of
from stormlet.spark.engine.partition.rows import CHUNK
from stormlet.spark.engine.passage.connect import frame_of_table
from stormlet.spark.engine.planning.numbering import ClusterPlan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

SPAN: Final = 1 << 16
"""Messages of one partition that Spark makes of one row."""
ACKED: Final = "acked"
DEAD_LETTER: Final = "dead letter"


class Outcomes(msgspec.Struct, frozen=True):
    """The outcomes of all messages of a run, as far as the driver knows them."""

    cluster: ClusterPlan
    by_spark: Collection[str]
    """The spouts that Spark reads."""
    messages: Mapping[int, int]
    """The number of messages of each spout task."""
    given_up: Mapping[int, GivenUp]
    """By the root of the message."""
    replayed: Mapping[int, int]
    """By root, the attempts of messages that were acked somewhere after more than one."""

    def frame(self, session: SparkSession) -> DataFrame:
        """Return a row for each message."""
        from pyspark.sql import functions as f

        spans = frame_of_table(session, _table(_SPANS, self._spans()))
        each = spans.select("*", f.explode(f.sequence("first", "last")).alias("number"))
        noted = frame_of_table(session, _table(_NOTED, self._noted()))
        found = each.withColumn("root", f.col("base") + f.col("number")).join(noted, "root", "left")
        return found.select(
            "spout",
            f.when(f.col("by_spark"), f.col("index")).alias("partition"),
            _row().alias("row"),
            f.coalesce("status", f.lit(ACKED)).alias("status"),
            f.coalesce("attempts", f.lit(1)).alias("attempts"),
            "component",
            "reason",
        )

    def _spans(self) -> Iterator[tuple[object, ...]]:
        for spout in self.cluster.plan.description.spouts:
            tasks = self.cluster.plan.tasks[spout]
            for index, task in enumerate(tasks):
                count = self.messages.get(task.task, 0)
                for first in range(1, count + 1, SPAN):
                    last = min(first + SPAN - 1, count)
                    by_spark = spout in self.by_spark
                    yield spout, by_spark, index, len(tasks), root_of(task.task, 0), first, last

    def _noted(self) -> Iterator[tuple[object, ...]]:
        """Iterate over the messages that were not acked at once."""
        for root, each in self.given_up.items():
            failure = each.history[-1]
            yield root, DEAD_LETTER, each.attempts, component_of(failure), reason_of(failure)
        for root, attempts in self.replayed.items():
            if root not in self.given_up:
                yield root, ACKED, attempts, None, None


def _row() -> Column:
    """The row of a message in its partition, or its number in its source: chunks go round the tasks there."""
    from pyspark.sql import functions as f

    place = f.col("number") - 1
    chunk = f.floor(place / f.lit(CHUNK)).cast("bigint") * f.col("tasks") + f.col("index")
    return f.when(f.col("by_spark"), place).otherwise(chunk * CHUNK + f.pmod(place, f.lit(CHUNK)))


def component_of(failure: Failure) -> str | None:
    """Return the bolt that has failed a tuple, or those that have held it."""
    return failure.component or ", ".join(failure.holders) or None


def reason_of(failure: Failure) -> str:
    """Return the exception, or the reason in words."""
    return text_of(failure.reason) if failure.exception is None else shown(failure.exception)


def letter_frame(session: SparkSession, letters: Iterable[DeadLetter], time: datetime) -> DataFrame:
    """Return a row for each letter, in the columns of a file of them."""
    records = (record_of(each, time) for each in letters)
    rows = ([*map(_plain, msgspec.structs.astuple(record))] for record in records)
    return frame_of_table(session, _table(_LETTERS, rows))


def _plain(value: object) -> object:
    return bytes(value).decode() if isinstance(value, msgspec.Raw) else value


_SPANS: Final = "spout string, by_spark bool, index int32, tasks int32, base int64, first int64, last int64"
_NOTED: Final = "root int64, status string, attempts int32, component string, reason string"
_LETTERS: Final = (
    "time timestamp, component string, stream string, value string, value_type string, message_id string, "
    "origin string, origin_type string, attempts int32, cause string, failed_in string, failed_task int32, "
    "reason string, exception string, held_by strings, history strings"
)


def _table(columns: str, rows: Iterable[Iterable[object]]) -> pa.Table:
    import pyarrow as pa

    kinds: Mapping[str, Any] = {
        "timestamp": pa.timestamp("us", "UTC"),
        "strings": pa.list_(pa.string()),
        "bool": pa.bool_(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "string": pa.string(),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in (each.split() for each in columns.split(", "))])
    fields = [*zip(*rows, strict=True)] or [()] * len(schema)
    arrays = [pa.array(each, field.type) for each, field in zip(fields, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
