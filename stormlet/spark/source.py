"""``DataFrameSpout``: the rows of a DataFrame as tracked tuples."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, cast, overload

import msgspec

from stormlet.core.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.errors import EndOfStream, InvalidTopology
from stormlet.spark.conversion import conversion
from stormlet.spark.frames import check_frame, has_fixed_order, zone_of_session
from stormlet.spark.pulling import Puller, Retries
from stormlet.spark.reading import batches_of, values_of_batches, values_of_rows
from stormlet.spark.refining import Refining, Transport
from stormlet.spark.requirements import check_packages

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

T = TypeVar("T")

RETRIES = Retries()
MOST_ROWS = 16
"""How many rows one call of ``next_tuple`` emits."""


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Where a tuple comes from: ``tup.origin`` of all that comes of a row."""

    partition: int
    """The partition of the DataFrame, from 0."""
    row: int
    """The row within its partition, from 0; of a batch, its first row."""


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

    ``transport="rows"`` is slower and takes types that Arrow lacks. Raises
    :class:`~stormlet.errors.InvalidTopology` for a DataFrame of Spark Connect or of a stream, for a column that
    has no Python form, and for one that does not fit its field; :class:`~stormlet.errors.SparkUnavailable` if
    packages do not work together. The topology crashes with :class:`~stormlet.errors.SparkFailed` if Spark
    fails; a task or result that got lost is read again first.
    """

    single_task: ClassVar[bool] = True

    @overload
    def __init__(
        self, df: DataFrame, as_: type[T], *, batches: Literal[False] = False, transport: Transport = "arrow"
    ) -> None: ...
    @overload
    def __init__(
        self: DataFrameSpout[RecordBatch],
        df: DataFrame,
        *,
        columns: Sequence[str] | None = None,
        batches: Literal[True],
    ) -> None: ...
    @overload
    def __init__(
        self: DataFrameSpout[tuple[Any, ...]],
        df: DataFrame,
        *,
        columns: Sequence[str] | None = None,
        batches: Literal[False] = False,
        transport: Transport = "arrow",
    ) -> None: ...
    def __init__(
        self,
        df: DataFrame,
        as_: type[Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
        batches: bool = False,
        transport: Transport = "arrow",
    ) -> None:
        _check_choice(as_, columns, batches=batches, transport=transport)
        check_packages()
        check_frame(df)
        self._frame = df
        refining = Refining(zone_of_session(df), transport)
        self._conversion = conversion(df.schema, refining, record=as_, columns=columns)
        if transport == "rows":
            self._read = values_of_rows(df, self._conversion)
        else:
            self._read = (batches_of if batches else values_of_batches)(df, self._conversion)
        self.outputs: object = as_ or (None if batches else self._conversion.names)
        """What the stream's values are: the record type, or the names of a tuple's fields."""

    def __call__(self) -> ReliableSpout[T]:
        """A new instance, for one task."""
        return cast("ReliableSpout[T]", FrameReader(self._frame, self._read))


class FrameReader(ReliableSpout[object]):
    """The spout that a :class:`DataFrameSpout` makes."""

    single_task = True

    def __init__(self, frame: DataFrame, read: Any) -> None:
        self._frame = frame
        self._read = read
        self._puller: Puller | None = None
        self._values: Iterator[object] = iter(())
        self._partition = 0
        self._row = 0
        self._most_pending: int | None = None

    def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start to pull."""
        loop = asyncio.get_running_loop()
        self._most_pending = context.config.max_spout_pending

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(out.wake)

        self._puller = Puller(
            self._read,
            self._frame.sparkSession.sparkContext,
            wake,
            name=f"{context.topology}: {context.component}",
            done={},
            may_resume=lambda: has_fixed_order(self._frame),
            retries=RETRIES,
        )
        self._puller.start()

    def next_tuple(self, out: SpoutCollector[object]) -> None:
        """Emit the next rows, if they are there: several, as a call costs as much as a tuple."""
        most = MOST_ROWS if self._most_pending is None else min(MOST_ROWS, self._most_pending - out.pending)
        values = list(islice(self._values, most))
        if not values and self._next_chunk():
            values = list(islice(self._values, most))
        for value in values:
            origin = Origin(self._partition, self._row)
            self._row += 1
            out.emit(value, message_id=origin, origin=origin)

    def _next_chunk(self) -> bool:
        """Whether there is one now. Raises :class:`~stormlet.errors.EndOfStream` after the last one."""
        puller = self._puller
        assert puller is not None, "the spout is not open"
        ended = puller.ended  # before the look at what waits, as it may end in between
        chunk = puller.take()
        if chunk is not None:
            self._values, self._partition, self._row = iter(chunk.values), chunk.partition, chunk.first_row
            return True
        if not ended:
            return False
        raise EndOfStream if puller.error is None else puller.error

    async def close(self) -> None:
        """Cancel Spark's jobs and wait for the puller, beside the loop."""
        puller = self._puller
        if puller is None or not puller.running:
            return
        loop, closed = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        def close() -> None:
            puller.close()
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_set, closed)

        threading.Thread(target=close, name="stormlet spark close", daemon=True).start()
        await closed


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _check_choice(
    record: type | None, columns: Sequence[str] | None, *, batches: bool, transport: Transport
) -> None:
    if record is not None and (columns is not None or batches):
        raise InvalidTopology(
            "as_= names the columns and what a row becomes; leave out columns= and batches="
        )
    if transport not in ("arrow", "rows"):
        raise InvalidTopology(f'transport must be "arrow" or "rows", not {transport!r}')
    if batches and transport == "rows":
        raise InvalidTopology('batches=True needs transport="arrow"')
    if isinstance(columns, str):
        raise InvalidTopology(f"columns= is a list of names, such as [{columns!r}]")
