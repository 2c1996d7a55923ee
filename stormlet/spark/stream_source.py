"""Makes the spouts of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stormlet.core.restarts import RestartPolicy
from stormlet.model.components import SpoutCollector, TaskContext
from stormlet.model.logic import says
from stormlet.spark.batch_reader import BatchReader
from stormlet.spark.chunks import Chunks
from stormlet.spark.conversion import Conversion
from stormlet.spark.epoch_stream_reader import EpochStreamReader
from stormlet.spark.keeping import QueryKeeper
from stormlet.spark.query_plans import QueryPlan
from stormlet.spark.reading import values_of_batches
from stormlet.spark.rows_read import RowsStreamed
from stormlet.spark.stream_reader import OnFailure, StreamReader
from stormlet.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class StreamSource:
    """The source of a spout that :func:`~stormlet.spark.stream` feeds."""

    needs_acks: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.needs_acks`."""
    single_task: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.single_task`."""
    resumes: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.resumes`."""

    gives_epochs: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.gives_epochs`."""

    def __init__(
        self,
        query: QueryPlan,
        rows: Conversion,
        on_failure: OnFailure,
        restarts: RestartPolicy,
        topology: Topology,
    ) -> None:
        self._query = query
        self._rows = rows
        self._on_failure: OnFailure = on_failure
        self._restarts = restarts
        self._topology = topology

    def __call__(self) -> StreamReader | EpochStreamReader:
        """A new instance, for one task: with sinks below that write exactly once, whole batches are replayed."""
        bolts = self._topology.describe().bolts.values()
        in_epochs = any(says(bolt.logic, "needs_epochs") for bolt in bolts)
        return (EpochStreamReader if in_epochs else StreamReader)(self._batches, self._on_failure)

    def _batches(self, context: TaskContext, out: SpoutCollector[object]) -> BatchReader:
        rows = RowsStreamed(context)

        def pull(batch: DataFrame) -> Chunks:
            chunks = Chunks(batch, values_of_batches(batch, self._rows), rows)
            chunks.open({}, context, out)
            return chunks

        keeper = QueryKeeper(self._query.begin, self._restarts, self._query.name)
        return BatchReader(keeper, pull, self._query.claim)
