"""A streaming query that was described, and not started yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from stormlet.errors import InvalidTopology
from stormlet.spark.claims import Claim
from stormlet.spark.folders import Folder
from stormlet.spark.queries import Offer, SparkQuery
from stormlet.spark.troubles import summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

OutputMode: TypeAlias = Literal["append", "update", "complete"]
"""Which rows of a stream of aggregates come in a batch; as in Spark."""


class Trigger(TypedDict, total=False):
    """When Spark makes a batch; without it, whenever the last one is done and there is something new."""

    processingTime: str
    """The interval, such as ``"5 seconds"``."""
    availableNow: bool
    """True: batches of what is there now, and then the stream has ended."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What is to be read, and how."""

    frame: DataFrame
    name: str
    checkpoint: str
    """Spark's ``checkpointLocation``."""
    output_mode: OutputMode
    trigger: Trigger

    def check(self) -> None:
        """Raises :class:`~stormlet.errors.InvalidTopology` for a trigger that Spark does not take."""
        for kind in self.trigger:
            if kind not in Trigger.__annotations__:
                raise InvalidTopology(
                    f"trigger: {kind!r} is none of those that make batches: {', '.join(Trigger.__annotations__)}"
                )
        try:
            self.writer()
        except Exception as error:
            raise InvalidTopology(f"trigger={self.trigger!r}: {summary(error)}") from error

    def claim(self) -> Claim | None:
        """Take the checkpoint for this run alone, where its file system is this machine's: two queries at a time would
        do the same batches. Raises :class:`~stormlet.errors.InvalidTopology` if another run has it; blocks."""
        path = Folder(self.frame.sparkSession, self.checkpoint).local_path
        if path is None:
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        claim = Claim(path)
        claim.take()
        return claim

    def writer(self) -> DataStreamWriter:
        """One that lacks only what is to be done with a batch."""
        writer = self.frame.writeStream.outputMode(self.output_mode).queryName(self.name)
        writer = writer.option("checkpointLocation", self.checkpoint)
        return writer.trigger(**cast("Any", self.trigger)) if self.trigger else writer

    def begin(self, offer: Offer) -> SparkQuery:
        """Begin a run; to be called on the loop's thread."""
        return SparkQuery(self.writer, self.frame.sparkSession.sparkContext, offer, self.name)
