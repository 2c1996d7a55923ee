"""Streams that leave a batch as DataFrames: what sinks write, and what ``result.stream(...)`` gives.

In the stage of its producers a bolt makes record batches of the values (:class:`TableBolt`). These are sent on like
other values, to a task that never runs: its rows are taken out of what the last stage has left, once the ledger adds
up. So a value that does not fit its columns is rejected as in process, and nothing is written before the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from stormlet.core.groupings import Global, Shuffle
from stormlet.core.schema import Schema, schema_of
from stormlet.core.tuples import Tuple
from stormlet.errors import InvalidEmit, InvalidTopology, SparkFailed
from stormlet.model.components import DEFAULT_STREAM, BatchBolt, Collector
from stormlet.model.description import BoltSpec, Description
from stormlet.model.logic import LogicKind
from stormlet.model.streams import Output, StreamId, Subscription
from stormlet.spark.arrow.columns import Misfit
from stormlet.spark.arrow.tables import Tables, is_batch
from stormlet.spark.engine.partition.rows import Kind, Row, unpack
from stormlet.spark.engine.passage.arrow_rows import rows_of
from stormlet.spark.engine.passage.staging import Kept
from stormlet.spark.engine.planning.layout import TableMaker
from stormlet.spark.engine.planning.numbering import ClusterPlan
from stormlet.spark.failures import said_of_task
from stormlet.spark.sink.dataframe_sink import DataFrameSink
from stormlet.spark.sink.writer import Destination, sink_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

OURS: Final = "__"
"""The first characters of the ids of components that no user has declared, as Storm's own have them."""
ROWS: Final = 10_000
"""Rows of a table that is sent on."""


class Leaving(msgspec.Struct, frozen=True):
    """One stream that leaves."""

    task: str
    """The component that its tables are sent to."""
    schema: Any
    """Spark's ``StructType``."""
    destination: Destination | None = None
    """The place that a sink writes to; None for a stream that the result gives."""
    exactly_once: bool = False
    """True for a sink that replaces each epoch as a whole."""

    def frame(self, rows: DataFrame, cluster: ClusterPlan) -> DataFrame:
        """Return its rows, taken out of what the last stage has left."""
        chunks = rows.where((rows["kind"] == int(Kind.CHUNK)) & (rows["target"] == self._task_in(cluster)))
        return chunks.mapInArrow(Unpacker(), self.schema)

    def result(self, kept: Kept, cluster: ClusterPlan) -> DataFrame:
        """Return them; if little was kept, they are read here."""
        import pyarrow as pa

        if not kept.is_little:
            return self.frame(kept.frame, cluster)
        tables = [*_tables_in(kept.rows(Kind.CHUNK, [self._task_in(cluster)]))]
        session = kept.session
        if not tables:
            return session.createDataFrame([], self.schema)
        return session.createDataFrame(pa.Table.from_batches(tables), self.schema)

    def _task_in(self, cluster: ClusterPlan) -> int:
        return cluster.plan.tasks[self.task][0].task


class TableFactory(TableMaker):
    """Makes the bolts that make tables of values."""

    def __init__(self, schema: StructType, folders: Sequence[str]) -> None:
        self._schema = schema
        self._folders = folders

    def __call__(self) -> BatchBolt[Any, bytes]:
        """The bolt of one task."""
        return TableBolt(self._schema, self._folders)


class TableBolt(BatchBolt[Any, bytes]):
    """Makes tables of values, and rejects those that do not fit their columns."""

    size = ROWS
    within = 3600.0

    def __init__(self, schema: StructType, folders: Sequence[str]) -> None:
        self._tables = Tables(schema, folders)

    def __getstate__(self) -> None:
        """It has no state from one epoch of a stream to the next."""

    def weight(self, value: Any) -> int:
        """The number of rows in a value."""
        return value.num_rows if is_batch(value) else 1

    def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[bytes]) -> None:
        """Emit one table. Raises :class:`~stormlet.errors.InvalidEmit` for a row that does not fit and belongs to no
        message."""
        batch = self._tables.of([tup.value for tup in tups])
        for place, why in batch.misfits.items():
            out.fail(tups[place], why, permanent=True)
        fitting = [tup for place, tup in enumerate(tups) if place not in batch.misfits]
        if batch.table.num_rows:
            out.emit(_written(batch.table), anchors=fitting)
        unowned = [why for place, why in batch.misfits.items() if not tups[place].roots]
        if unowned:
            raise InvalidEmit(
                f"rows that belong to no message do not fit their columns, the first of {len(unowned):,}: {unowned[0]}"
            )


def with_outputs(
    description: Description, streams: Sequence[StreamId]
) -> tuple[Description, Mapping[str, Leaving]]:
    """Return the description with its sinks replaced, and these streams sent on; and what leaves, by sink, or by the
    name of the stream.

    Raises :class:`~stormlet.errors.InvalidTopology` for columns that are not known, or cannot be written.
    """
    bolts, leaving = dict(description.bolts), dict[str, Leaving]()
    for id, bolt in description.bolts.items():
        if isinstance(bolt.logic, DataFrameSink):
            inputs = [_schema(description, each.source) for each in bolt.inputs]
            sink: DataFrameSink = bolt.logic
            schema = _columns(f"bolt {id!r}", sink.schema, inputs)
            leaving[id] = Leaving(f"{OURS}rows of {id}", schema, sink.destination, sink.needs_epochs)
            bolts[id] = _making(bolt, schema, sink.destination.partition_by)
            bolts[f"{OURS}rows of {id}"] = _taking(f"{OURS}rows of {id}", id)
    for stream in streams:
        name = stream_name(stream.component, stream.stream)
        schema = _columns(str(stream), None, [_schema(description, stream)])
        tables, rows = f"{OURS}tables of {name}", f"{OURS}rows of {name}"
        taken: Subscription[object] = Subscription(stream, Shuffle(), None)
        bolts[tables] = _making(_taking(tables, name), schema, inputs=[taken])
        bolts[rows] = _taking(rows, tables)
        leaving[name] = Leaving(rows, schema)
    return msgspec.structs.replace(description, bolts=bolts), leaving


def check_sinks(session: SparkSession, leaving: Mapping[str, Leaving], folder: Path | None = None) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for a sink that Spark would refuse to write, whatever the rows.
    ``folder`` is one that Spark's driver reaches; None for that of this machine's temporary files."""
    for id, each in leaving.items():
        if each.destination is None:
            continue
        try:
            each.destination.check(session.createDataFrame([], each.schema), folder)
            each.destination.check_place(session)
        except InvalidTopology as error:
            raise InvalidTopology(f"bolt {id!r}: {error}") from error.__cause__


def write_sinks(
    leaving: Mapping[str, Leaving],
    kept: Kept,
    cluster: ClusterPlan,
    write: Callable[[Leaving, Destination, DataFrame], None],
) -> None:
    """Write one sink after another by this function. Raise :class:`~stormlet.errors.SparkFailed` naming the first that
    cannot be."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    written = list[str]()
    for id, each in leaving.items():
        if each.destination is None:
            continue
        try:
            write(each, each.destination, each.frame(kept.frame, cluster))
        except (PySparkException, Py4JError) as error:
            before = ", ".join(map(repr, written)) or "no other sink"
            said = said_of_task(error)
            raise SparkFailed(
                f"sink {id!r} cannot be written: {said}; {before} was written before it"
            ) from error
        written.append(id)


def stream_name(component: str, stream: str) -> str:
    """Return the name of a stream in a result."""
    return component if stream == DEFAULT_STREAM else f"{component}/{stream}"


class Unpacker:
    """A function that takes the tables out of rows."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take out those of one partition."""
        return _tables_in(row for batch in batches for row in rows_of(batch))


def _tables_in(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for row in rows:
        for table in unpack(row).values:
            reader: Iterable[pa.RecordBatch] = cast("Any", pa.ipc.open_stream(table))
            yield from reader


def _written(table: pa.Table) -> bytes:
    import pyarrow as pa

    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return stream.getvalue().to_pybytes()


def _schema(description: Description, stream: StreamId) -> Schema:
    return description.components[stream.component].outputs[stream.stream].schema


def _columns(where: str, given: object, inputs: Sequence[Schema]) -> StructType:
    schema = sink_schema(given, inputs)
    if schema is None:
        raise InvalidTopology(
            f"{where}: the columns of record batches are not known before the first; give schema="
        )
    try:
        Tables(schema)
    except Misfit as misfit:
        raise InvalidTopology(f"{where}: {misfit}") from None
    return schema


def _making(
    bolt: BoltSpec,
    schema: StructType,
    folders: Sequence[str] = (),
    inputs: Sequence[Subscription[object]] | None = None,
) -> BoltSpec:
    return msgspec.structs.replace(
        bolt,
        logic=TableFactory(schema, folders),
        kind=LogicKind.FACTORY,
        outputs={DEFAULT_STREAM: Output(schema_of(None))},
        options={},
        concurrency=1,
        inputs=bolt.inputs if inputs is None else inputs,
    )


def _taking(id: str, producer: str) -> BoltSpec:
    return BoltSpec(
        id=id,
        logic=_never,
        kind=LogicKind.FUNCTION,
        parallelism=1,
        outputs={},
        options={},
        inputs=[Subscription(StreamId(producer, DEFAULT_STREAM), Global(), None)],
        tick=None,
        concurrency=1,
        executor="loop",
        on_error="fail",
    )


def _never(value: object) -> None:
    raise AssertionError("its rows are taken out of what the last stage has left")
