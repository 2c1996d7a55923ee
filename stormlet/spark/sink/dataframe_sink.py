"""``DataFrameSink``: has Spark write the values of a stream, in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any, ClassVar, get_args

from stormlet.errors import InvalidConfiguration
from stormlet.model.checks.numbers import is_int, is_seconds
from stormlet.model.components import BatchBolt
from stormlet.model.state.committers import CommitterFactory, RowSpec
from stormlet.spark.sink.bolts import BatchWriter
from stormlet.spark.sink.committed import CommittedSink
from stormlet.spark.sink.portions import AT_ONCE
from stormlet.spark.sink.writer import Destination, EpochWriter, Mode, SparkWriter

PENDING_BATCHES = 4
"""Portions of ``rows`` rows that may be pending for each task of an exactly-once sink, which acks what it has kept."""


class DataFrameSink(CommitterFactory):
    """Writes a stream to files or a table with Spark, as in ``topology.bolt("write", DataFrameSink("out/"),
    rows.shuffle())``.

    A row is acked when its write has been committed, so that each row is written at least once: it is written again if
    the write fails, or if something else of its trees does. Rows do not time out here.

    - ``path`` or ``table`` is the place; ``format``, ``options`` and ``partition_by`` are as in Spark.
    - ``mode`` decides about what is there when a run begins: "append" keeps it, "overwrite" replaces it before the
      first row comes, "error" refuses the start.
    - ``schema`` has the columns: Spark's DDL, a ``StructType``, a ``pyarrow.Schema`` or a record type. Without
      it they are those of the input's record type. Values are records, dicts, tuples in the columns' order, or
      whole record batches of pyarrow; without ``schema``, the first of these gives the columns.
    - A write begins when there are ``rows``, when the first row is ``seconds`` old, and when no more can come. While it
      goes on, more rows are gathered, up to 32 times as many or 64 MiB, and the next write has all of them.

    With ``exactly_once=True`` each row is written once, whatever fails and whenever the process is killed. In a
    topology with ``state=``, or with a source that has it at its checkpoint (``DataFrameSpout(df, checkpoint=...,
    epoch_rows=...)``), the sink is a :class:`~stormlet.Committer`: each epoch that has rows is written as a whole into
    a directory of its own, ``source=.../epoch=...``, once it is durable. A reader of the path finds these two as
    additional columns. Sources may be of any kind that goes on by the state.

    Without a state it may be below a :func:`~stormlet.spark.stream` that is the topology's only spout: the epochs are
    its batches, which Spark gives again until they are written. What comes from no batch, such as what ``finish`` emits
    at the end, crashes the topology with :class:`~stormlet.errors.NotExactlyOnce`.

    A row that does not fit its columns is rejected (no replay can help it), and the others are written.
    If Spark fails, all rows of the write fail with :class:`~stormlet.errors.SparkFailed`, whose cause is Spark's
    error.

    Raises :class:`~stormlet.errors.InvalidConfiguration` for arguments that do not go together. When the topology
    starts, Spark checks the columns, and for a ``path`` ``format`` and ``options``, as far as it can without rows;
    those of a ``table`` are checked with the first write.
    """

    needs_acks: ClassVar[bool] = True
    """See :attr:`stormlet.model.components.BoltBase.needs_acks`."""

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        table: str | None = None,
        format: str = "parquet",  # noqa: A002 as Spark calls it
        mode: Mode = "append",
        options: Mapping[str, str] | None = None,
        partition_by: str | Sequence[str] = (),
        schema: object = None,
        rows: int = 10_000,
        seconds: float = 10.0,
        exactly_once: bool = False,
    ) -> None:
        if (path is None) is (table is None):
            raise _invalid("needs a path or a table=, and not both")
        if mode not in get_args(Mode):
            raise _invalid(f"mode must be one of {', '.join(map(repr, get_args(Mode)))}, not {mode!r}")
        if not is_int(rows, 1):
            raise _invalid(f"rows must be an int of at least 1, not {rows!r}")
        if not is_seconds(seconds) or not seconds:
            raise _invalid(f"seconds must be a finite number above 0, not {seconds!r}")
        if exactly_once:
            _check_exactly_once(path, mode)
        self.destination = Destination(
            None if path is None else fspath(path),
            table,
            format,
            mode,
            dict(options or {}),
            (partition_by,) if isinstance(partition_by, str) else tuple(partition_by),
        )
        """The place that it writes to."""
        self.schema = schema
        """The columns, as they were given."""
        self._rows = rows
        self._seconds = seconds
        gathered = PENDING_BATCHES if exactly_once else AT_ONCE + 1  # one more is filling
        self.least_pending = gathered * rows
        """See :attr:`stormlet.model.components.BoltBase.least_pending`."""
        self.keeps_state = mode == "overwrite"
        """True for "overwrite": a run that resumes after another would replace the rows of that one. See
        :attr:`stormlet.model.components.BoltBase.keeps_state`."""
        self.state_advice = (
            'mode="overwrite" would replace what earlier runs have written, so use mode="append"'
        )
        """See :attr:`stormlet.model.traits.BoltTraits.state_advice`."""
        self.needs_epochs = exactly_once
        """See :attr:`stormlet.model.traits.BoltTraits.needs_epochs`."""
        self.epochs_advice = (
            "set state= on the topology, use DataFrameSpout(df, checkpoint=..., epoch_rows=...) or, as the only spout, "
            "stream(...), or leave out exactly_once="
        )
        """See :attr:`stormlet.model.traits.BoltTraits.epochs_advice`."""

    @property
    def rows_kept(self) -> RowSpec | None:
        """Tables of Arrow, with ``exactly_once=True``."""
        return RowSpec(bytes, replaces=True, has_tasks_elsewhere=True) if self.needs_epochs else None

    def __call__(self) -> BatchBolt[Any, None]:
        """The bolt of one task."""
        if self.needs_epochs:
            return CommittedSink(EpochWriter(self.destination, self.schema), self._rows, self._seconds)
        return BatchWriter(self._writer(), self._rows, self._seconds)

    def _writer(self) -> SparkWriter:
        return SparkWriter(self.destination, self.schema)


def _check_exactly_once(path: str | PathLike[str] | None, mode: Mode) -> None:
    if path is None:
        raise _invalid("needs a path with exactly_once=True, as each epoch is a directory of its own")
    if mode != "append":
        raise _invalid(
            f"cannot have mode={mode!r} with exactly_once=True, which replaces what a run before it has written of the "
            f"same epochs, and nothing else"
        )


def _invalid(what: str) -> InvalidConfiguration:
    return InvalidConfiguration(f"DataFrameSink {what}")
