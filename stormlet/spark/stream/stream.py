"""``stream``: a Structured Streaming query feeds a spout, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, get_args

from stormlet.core.retries import RestartPolicy
from stormlet.core.schema import FieldList, Opaque, Record, Schema
from stormlet.errors import InvalidTopology
from stormlet.model.components import DEFAULT_STREAM, SpoutCollector, TaskContext
from stormlet.model.streams import Stream
from stormlet.spark.arrow.conversion import Conversion, check_form, conversion
from stormlet.spark.arrow.refiners import Refining
from stormlet.spark.frames import check_streaming_frame, zone_of_session
from stormlet.spark.session import check_packages
from stormlet.spark.source.progress import StreamProgress
from stormlet.spark.source.puller import Chunks
from stormlet.spark.source.reading import pruned, values_of_batches
from stormlet.spark.stream.keeper import OutputMode, QueryKeeper, QueryPlan, Trigger
from stormlet.spark.stream.reader import BatchReader, OnFailure
from stormlet.spark.stream.spout import StreamSpout
from stormlet.topology import Topology

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

T = TypeVar("T")


def stream(
    df: DataFrame,
    topology: Topology,
    *,
    into: Stream[T],
    checkpoint: str | os.PathLike[str],
    as_: type[T] | None = None,
    columns: Sequence[str] | None = None,
    trigger: Trigger | None = None,
    output_mode: OutputMode = "append",
    on_failure: OnFailure = "dead_letter",
    restarts: RestartPolicy | None = None,
) -> None:
    """Feed a spout that has no source yet from a streaming DataFrame: ``stream(df, topology, into=orders,
    checkpoint="orders.checkpoint")``, where ``orders = topology.spout("orders", outputs=Order)``.

    The query starts and ends with the topology. Each of its micro-batches is emitted row by row, in the form that
    ``into`` declares, or as a record of the type ``as_``, or as a tuple of the ``columns``, by default all. Spark
    notes in the ``checkpoint`` (its ``checkpointLocation``) that a batch is done when all its rows are acked or among
    the dead letters; a batch that was not done comes again, with the same number and rows, also after a kill. Each
    tuple's ``origin`` is an :class:`Origin`, whose ``epoch`` is the batch's number. In process, bolts below that say
    ``keeps_state = True`` are refused, as they would miss what was done before;
    :func:`~stormlet.spark.stream_on_spark` saves the state of bolts with each batch.

    A row is replayed when it fails, as values of generators are (law S6). When it is given up, ``on_failure`` says
    what becomes of it: ``"dead_letter"``, for which ``run(dead_letters=...)`` is needed, or ``"fail_batch"``: then
    the query ends, and starts again with that batch. So it does after an error of Spark's, as often as ``restarts``
    allows, by default three times a minute; then the topology crashes, with that error as the cause. A query that is
    stopped elsewhere, or whose ``trigger`` ends it, ends the spout.

    Raises :class:`~stormlet.errors.InvalidTopology` for a DataFrame of Spark Connect or one that is no stream, for a
    spout that has a source, and for columns that do not fit.
    """
    check_packages()
    check_streaming_frame(df)
    _check_spout(topology, into)
    _check_choice("output_mode", output_mode, OutputMode)
    _check_choice("on_failure", on_failure, OnFailure)
    record, names = _form(into, as_, columns)
    rows = conversion(df.schema, Refining(zone_of_session(df), "arrow"), record=record, columns=names)
    query = QueryPlan(
        df, f"{topology.name}: {into.component}", os.fspath(checkpoint), output_mode, trigger or Trigger()
    )
    query.check()
    source = StreamSource(query, rows, on_failure, restarts or RestartPolicy())
    topology.set_source(into, cast("Any", source))


def _check_spout(topology: Topology, into: Stream[Any]) -> None:
    if topology.source_of(into) is not None:
        raise InvalidTopology(
            f"spout {into.component!r} has a source already; make one without: "
            f"topology.spout({into.component!r}, outputs=...)"
        )
    if into.name != DEFAULT_STREAM or into.output.direct:
        raise InvalidTopology(f"{into.id} cannot be fed from a DataFrame, only a spout's default stream can")


def _check_choice(name: str, value: object, choices: object) -> None:
    if value not in get_args(choices):
        raise InvalidTopology(
            f"{name} must be one of {', '.join(map(repr, get_args(choices)))}, not {value!r}"
        )


def _form(
    into: Stream[Any], record: type | None, columns: Sequence[str] | None
) -> tuple[type | None, Sequence[str] | None]:
    """The record type or the columns of the emitted values; neither for tuples of all columns."""
    check_form(record, columns)
    schema = into.output.schema
    if isinstance(schema, Opaque):
        return record, columns
    declared = _declared_form(schema)
    if declared is None or ((record or columns) and (record, columns and tuple(columns)) != declared):
        raise InvalidTopology(
            f"spout {into.component!r} is declared to emit {schema.name}, and a row would become "
            f"{_said_form(record, columns)}; leave out as_= and columns=, or declare other outputs="
        )
    return declared


def _declared_form(schema: Schema) -> tuple[type | None, Sequence[str] | None] | None:
    if isinstance(schema, Record):
        return schema.record, None
    return (None, schema.fields) if isinstance(schema, FieldList) else None


def _said_form(record: type | None, columns: Sequence[str] | None) -> str:
    if record is not None:
        return record.__name__
    return "a tuple" if columns is None else f"({', '.join(columns)})"


class StreamSource:
    """The source of a spout that :func:`~stormlet.spark.stream` feeds."""

    needs_acks: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.needs_acks`."""
    resumable: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.resumable`."""
    single_task: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.single_task`."""
    resumes: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.resumes`."""
    state_advice: ClassVar[str] = (
        "set state= on the topology and declare it in a KeyedBolt, or let Spark keep it, as groupBy does in the "
        "streaming DataFrame"
    )
    """See :attr:`stormlet.model.traits.SpoutTraits.state_advice`."""
    cuts_epochs: ClassVar[bool] = True
    """See :attr:`stormlet.model.traits.SpoutTraits.cuts_epochs`."""

    def __init__(
        self, query: QueryPlan, rows: Conversion, on_failure: OnFailure, restarts: RestartPolicy
    ) -> None:
        self._query = query
        self._rows = rows
        self._on_failure: OnFailure = on_failure
        self._restarts = restarts

    @property
    def query(self) -> QueryPlan:
        """The query, not started."""
        return self._query

    @property
    def fails_batch(self) -> bool:
        """True if a row that is given up fails its batch."""
        return self._on_failure == "fail_batch"

    def keeper(self) -> QueryKeeper:
        """The runs of the query."""
        return QueryKeeper(self._query.begin, self._restarts, self._query.name)

    def distributed(self, batch: DataFrame) -> tuple[DataFrame, Callable[[RecordBatch], list[object]]]:
        """The rows of a batch for tasks of Spark to read, and the function that makes values of a record batch
        there."""
        return pruned(batch, self._rows), self._rows.of_batch

    def __call__(self) -> StreamSpout:
        """A new instance, for one task."""
        return StreamSpout(self._batches, self._on_failure)

    def _batches(self, context: TaskContext, out: SpoutCollector[object]) -> BatchReader:
        rows = StreamProgress(context)

        def pull(batch: DataFrame) -> Chunks:
            chunks = Chunks(batch, values_of_batches(batch, self._rows), rows)
            chunks.open({}, context, out)
            return chunks

        return BatchReader(self.keeper(), pull, self._query.claim_in_process)
