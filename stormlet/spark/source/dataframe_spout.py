"""``DataFrameSpout``: the rows of a DataFrame as tracked tuples."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, cast, overload

from stormlet.errors import InvalidTopology
from stormlet.model.components import Spout
from stormlet.spark.arrow.conversion import check_form, conversion
from stormlet.spark.arrow.refiners import Refining, Transport
from stormlet.spark.frames import check_frame, check_local, zone_of_session
from stormlet.spark.session import check_packages
from stormlet.spark.source.checkpoint import Bookmark, CheckpointFile, refuse_rows_done
from stormlet.spark.source.ordering import OrderedRead
from stormlet.spark.source.plans import check_repeatable, check_resumable
from stormlet.spark.source.reader import EpochReader, FrameReader, ResumingReader
from stormlet.spark.source.reading import Read, batches_of, pruned, values_of_batches, values_of_rows

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

T = TypeVar("T")

CheckpointPath: TypeAlias = str | os.PathLike[str]
MOST_BATCHES = 64
"""Whole record batches in memory at a time, unless ``max_spout_pending`` sets another number."""


class DataFrameSpout(Generic[T]):
    """Makes a spout that emits the rows of a DataFrame: ``topology.spout("flights", DataFrameSpout(df,
    as_=Flight))``.

    A row is emitted as a record of the type ``as_`` (a class of msgspec.Struct, a dataclass or a NamedTuple),
    which takes the columns of its fields' names; or as a plain tuple of the ``columns``, by default all; or,
    with ``batches=True``, rows are emitted many at a time as a :class:`pyarrow.RecordBatch`. Timestamps are
    aware, in the session's zone; structs are records, maps dicts and arrays lists. Only the columns that are
    asked for are read. Each tuple's ``origin`` is an :class:`Origin`, which is its message id, too.

    Rows are kept until they are acked, and replayed when they fail, as those of generators are (law S6). The
    order of rows within a partition is kept. In memory are two partitions in Spark's driver, and a few record
    batches here (``spark.sql.execution.arrow.maxRecordsPerBatch`` rows each).

    In a topology with ``state=`` another run goes on after the rows that are durable there, and they may feed bolts
    with state; the DataFrame must be one that a checkpoint could be kept of. No ``checkpoint`` is needed then.

    With ``checkpoint=path`` a run that was killed goes on with the rows that were not done: those neither acked
    nor durably among the dead letters, for which ``run(dead_letters=...)`` is needed. Rows that were done after
    the first one that was not, and in the last second, come again. The DataFrame must be a scan of files with
    narrow operators (``select``, ``where``, ``union``), and the same one each time; or, with ``order_by=`` the
    columns of a unique key, any that has the same rows each time. Bolts below that say ``keeps_state = True``
    are refused, as they would miss what was acked before.

    With ``epoch_rows=n`` the checkpoint is a state file: the topology runs as with ``state=path``, in epochs of n rows
    or, if that takes longer, of an hour. So exactly-once sinks and bolts with state may be below, and other spouts
    beside it. In memory are the rows of one epoch.

    With ``order_by=`` Spark sorts the rows, ascending, and all of them count as partition 0. The key must be
    made of whole numbers, decimals, texts and times, without nulls, and unique, which is checked while it is read.

    ``transport="rows"`` is slower and takes types that Arrow lacks. Raises
    :class:`~stormlet.errors.InvalidTopology` for a DataFrame of a stream, for one of Spark Connect but in
    :func:`run_on_spark`, for a column that has no Python form, and for one that does not fit its field;
    :class:`~stormlet.errors.SparkUnavailable` if packages do not work together. The topology crashes with
    :class:`~stormlet.errors.SparkFailed` if Spark fails; a task or result that got lost is read again first.
    """

    single_task: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.Spout.single_task`."""
    state_advice: ClassVar[str] = "let that spout begin anew, without checkpoint="
    """See :attr:`stormlet.model.traits.SpoutTraits.state_advice`."""

    @overload
    def __init__(
        self,
        df: DataFrame,
        as_: type[T],
        *,
        batches: Literal[False] = False,
        transport: Transport = "arrow",
        order_by: str | Sequence[str] = (),
        checkpoint: CheckpointPath | None = None,
        epoch_rows: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: DataFrameSpout[RecordBatch],
        df: DataFrame,
        *,
        columns: Sequence[str] | None = None,
        batches: Literal[True],
        order_by: str | Sequence[str] = (),
        checkpoint: CheckpointPath | None = None,
        epoch_rows: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: DataFrameSpout[tuple[Any, ...]],
        df: DataFrame,
        *,
        columns: Sequence[str] | None = None,
        batches: Literal[False] = False,
        transport: Transport = "arrow",
        order_by: str | Sequence[str] = (),
        checkpoint: CheckpointPath | None = None,
        epoch_rows: int | None = None,
    ) -> None: ...
    def __init__(
        self,
        df: DataFrame,
        as_: type[Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
        batches: bool = False,
        transport: Transport = "arrow",
        order_by: str | Sequence[str] = (),
        checkpoint: CheckpointPath | None = None,
        epoch_rows: int | None = None,
    ) -> None:
        order_by = [order_by] if isinstance(order_by, str) else list(dict.fromkeys(order_by))
        _check_choice(as_, columns, order_by, batches=batches, transport=transport)
        _check_epochs(epoch_rows, checkpoint)
        check_packages()
        check_frame(df)
        if order_by or checkpoint is not None:
            check_local(df)
        self._frame = df
        self._batches = batches
        self._checkpoint = None if checkpoint is None else Path(checkpoint).absolute()
        self.resumes = checkpoint is not None and epoch_rows is None
        """See :attr:`stormlet.model.components.Spout.resumes`."""
        self.resumable = not self.resumes
        """See :attr:`stormlet.model.components.Spout.resumable`."""
        self.state_place = "" if epoch_rows is None else str(self._checkpoint)
        """See :attr:`stormlet.model.traits.SpoutTraits.state_place`."""
        self.epoch_messages = epoch_rows
        """See :attr:`stormlet.model.traits.SpoutTraits.epoch_messages`."""
        if self.state_place:
            refuse_rows_done(Path(self.state_place))
        self.order_by = tuple(order_by)
        """The columns that Spark sorts the rows by."""
        self.transport = transport
        """The form in which rows come from Spark."""
        refining = Refining(zone_of_session(df), transport)
        self._conversion = conversion(df.schema, refining, record=as_, columns=columns)
        self._new_read: Callable[[], Read]
        if order_by:
            keep = {"batches": batches, "resumes": self.resumes}
            self._new_read = partial(OrderedRead, df, self._conversion, order_by, **keep)
            self._new_read()  # which checks the key
        elif transport == "rows":
            self._new_read = partial(values_of_rows, df, self._conversion)
        else:
            self._new_read = partial(batches_of if batches else values_of_batches, df, self._conversion)
        if checkpoint is not None:
            (check_repeatable if order_by else check_resumable)(df)
        self.outputs: object = as_ or (_record_batch() if batches else self._conversion.names)
        """The kind of the stream's values: the record type, the names of a tuple's fields, or record batches."""
        self.most_pending = MOST_BATCHES if batches else None
        """See :attr:`stormlet.model.components.Spout.most_pending`."""

    def distributed(self) -> tuple[DataFrame, Callable[[RecordBatch], list[object]]]:
        """The DataFrame for tasks of Spark to read, and the function that makes values of a record batch there."""
        values_of = partial(_renamed, self._conversion.names) if self._batches else self._conversion.of_batch
        return pruned(self._frame, self._conversion), values_of

    def __call__(self) -> Spout[T]:
        """A new instance, for one task. Raises :class:`~stormlet.errors.InvalidTopology` for a DataFrame of Spark
        Connect."""
        check_local(self._frame)
        return cast("Spout[T]", self._reader(self._new_read()))

    def _reader(self, read: Read) -> Spout[object]:
        frame, columns, in_batches = self._frame, self._conversion.names, self._batches
        if self.epoch_messages is not None:
            return EpochReader(frame, read, columns, self.epoch_messages, in_batches=in_batches)
        if self._checkpoint is None:
            return FrameReader(frame, read, columns, in_batches=in_batches)
        bookmark = Bookmark(frame, read, columns, CheckpointFile(self._checkpoint))
        return ResumingReader(frame, read, columns, bookmark, in_batches=in_batches)


def _renamed(names: tuple[str, ...], batch: RecordBatch) -> list[object]:
    return [batch.rename_columns(names)]


def _record_batch() -> type[RecordBatch]:
    from pyarrow import RecordBatch

    return RecordBatch


def _check_choice(
    record: type | None,
    columns: Sequence[str] | None,
    order_by: Sequence[str],
    *,
    batches: bool,
    transport: Transport,
) -> None:
    check_form(record, columns)
    if record is not None and batches:
        raise InvalidTopology("as_= names the columns and what a row becomes; leave out batches=")
    if transport not in ("arrow", "rows"):
        raise InvalidTopology(f'transport must be "arrow" or "rows", not {transport!r}')
    if batches and transport == "rows":
        raise InvalidTopology('batches=True needs transport="arrow"')
    if order_by and transport == "rows":
        raise InvalidTopology('order_by= needs transport="arrow"')


def _check_epochs(rows: object, checkpoint: object) -> None:
    if rows is None:
        return
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise InvalidTopology(
            f"epoch_rows= is how many rows an epoch has, an int of at least 1, not {rows!r}"
        )
    if checkpoint is None:
        raise InvalidTopology("epoch_rows= needs checkpoint=, which says what epochs are done")
