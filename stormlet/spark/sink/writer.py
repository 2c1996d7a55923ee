"""Writes of values with Spark: their destination, their columns, and the writer, which blocks its thread."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeAlias, cast
from uuid import uuid4

from stormlet.core.records import class_below
from stormlet.core.schema import Schema
from stormlet.core.shortened import counted
from stormlet.errors import InvalidTopology, NotExactlyOnce, SparkFailed
from stormlet.spark.arrow.columns import Misfit
from stormlet.spark.arrow.records import schema_of_record
from stormlet.spark.arrow.tables import Batch, LearnedTables, Tables
from stormlet.spark.failures import summary
from stormlet.spark.files import Folder, is_seen
from stormlet.spark.frames import is_of_connect
from stormlet.spark.session import spark_session
from stormlet.spark.sink.arrow_frames import ArrowFrames
from stormlet.spark.sink.trial import check_write, is_of_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import StructType

Mode: TypeAlias = Literal["append", "overwrite", "error"]
"""Treatment of what is there when a run begins: it stays, it is replaced, or the start is refused."""

_turns: defaultdict[str, Lock] = defaultdict(Lock)
"""Destination -> lock that this process holds while it writes there."""

SOURCE, EPOCH = "source", "epoch"
"""The columns that a reader of epochs finds in addition to the sink's own, from the names of directories."""
ROWS_PER_FILE = 1_000_000
OWNER = "_owner"
"""The file that says which sink has written the rows of a query. Readers leave out such names."""
MARKER = "_SUCCESS"
"""The file by which Spark says that a directory has been written as a whole."""

ALL_OF_IT = {"partitionOverwriteMode": "static"}
"""Makes an overwrite replace everything. A session's "dynamic" would leave the partitions without a new row."""


@dataclass(frozen=True, slots=True)
class SourceKey:
    """Name of a line of epochs in the names of directories."""

    name: str
    """The sink's or the query's. Begins with a letter, so that Spark reads it as text."""
    line: str = ""

    def __str__(self) -> str:
        return f"{self.name}-{self.line}" if self.line else self.name


@dataclass(frozen=True, slots=True)
class Destination:
    """A directory of files, or a table."""

    path: str | None
    table: str | None
    format: str
    mode: Mode
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    partition_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"table {self.table}" if self.path is None else f"{self.format} at {self.path}"

    @property
    def turn(self) -> Lock:
        """The lock to hold during a write. Spark's committer keeps the files of all writes to one path in one
        temporary directory, which the first one to finish removes: two writes at a time could both lose rows."""
        return _turns[f"{self.table or self.path}"]

    def below(self, *folders: str) -> Destination:
        """A directory within this one."""
        return replace(self, path="/".join((f"{self.path}".rstrip("/"), *folders)))

    def check(self, nothing: DataFrame, folder: Path | None = None) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` for files that Spark would not write, whatever the rows.
        ``nothing`` is a DataFrame without any, and ``folder`` one that Spark's driver reaches."""
        if self.path is not None:
            writer = self._writer(nothing, "append", {})
            check_write(f"{self}", writer, self.format, nothing.sparkSession, folder)

    def check_place(self, session: SparkSession) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` if something is there that ``mode`` does not allow."""
        if self.mode == "error" and self.is_sparks_own and self._is_taken(session):
            raise InvalidTopology(
                f'{self} is there already, which mode="error" refuses; remove it, write elsewhere, or give another '
                f"mode="
            )

    def _is_taken(self, session: SparkSession) -> bool:
        if self.path is None:
            return session.catalog.tableExists(f"{self.table}")
        return is_seen(session, self.path)  # an empty directory, too

    def begin(self, nothing: DataFrame) -> None:
        """Write a DataFrame without rows before the first row of a run, as ``mode`` requires."""
        if self.mode != "append":
            self.write(nothing)

    def write(self, rows: DataFrame) -> None:
        """Write all rows of a run, as ``mode`` requires."""
        if self.mode == "overwrite" and self.path is not None and not is_of_connect(rows):
            # The client of Spark Connect sees no files.
            remove_marker(Folder(rows.sparkSession, self.path))
        self._write(rows, self.mode, ALL_OF_IT)

    @property
    def is_sparks_own(self) -> bool:
        """True for a table, and for files of a format that Spark brings."""
        return self.path is None or is_of_files(self.format)

    def is_there(self, session: SparkSession) -> bool:
        """True if there is such a table, or anything in the directory."""
        if self.path is None:
            return session.catalog.tableExists(f"{self.table}")
        return bool(Folder(session, self.path).names())

    def append(self, rows: DataFrame) -> None:
        """Write one batch."""
        self._write(rows, "append", {})

    def replace(self, rows: DataFrame) -> None:
        """Replace all rows by these; :func:`remove_marker` comes first."""
        self._write(rows, "overwrite", ALL_OF_IT)

    def _writer(self, rows: DataFrame, mode: Mode, options: Mapping[str, str]) -> DataFrameWriter:
        writer = rows.write.format(self.format).mode(mode).options(**{**self.options, **options})
        return writer.partitionBy(*self.partition_by) if self.partition_by else writer

    def _write(self, rows: DataFrame, mode: Mode, options: Mapping[str, str]) -> None:
        writer = self._writer(rows, mode, options)
        if self.path is None:
            assert self.table is not None
            writer.saveAsTable(self.table)
        else:
            writer.save(self.path)


class SparkWriter:
    """The writer of one task of a sink. Methods block, but for :meth:`interrupt`."""

    _session: SparkSession
    _frames: ArrowFrames
    _tables: Tables | LearnedTables

    def __init__(self, destination: Destination, schema: object) -> None:
        self._destination = destination
        self._given_schema = schema
        self._tag = f"stormlet-sink-{uuid4()}"
        self._interrupted = False
        self._has_written = False
        """True once there was a row to write."""

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """Prepare for writes; ``first`` is true in one task of the sink.

        Raises :class:`~stormlet.errors.SparkUnavailable`, :class:`~stormlet.errors.SparkFailed`, and
        :class:`~stormlet.errors.InvalidTopology` for columns that cannot be written.
        """
        self._session = spark_session()
        self._session.sparkContext.addJobTag(self._tag)  # of this thread, which is the task's own
        self._frames = ArrowFrames(self._session)
        schema = sink_schema(self._given_schema, inputs)
        try:
            self._tables = LearnedTables(self._tables_of) if schema is None else self._tables_of(schema)
        except Misfit as misfit:
            raise InvalidTopology(str(misfit)) from None
        if first:
            self._check(schema)
            if self._destination.mode != "append":
                self._begin(self._schema)

    def convert(self, values: Sequence[object]) -> Batch:
        """The table of the values that fit."""
        return self._tables.of(values)

    def write(self, tables: Sequence[pa.Table]) -> None:
        """Write all rows of these tables, durably. Raises :class:`~stormlet.errors.SparkFailed`."""
        import pyarrow as pa

        some = [table for table in tables if table.num_rows]  # one without rows may have no columns, either
        if some:
            self._append(pa.concat_tables(some))

    def write_without_rows(self) -> None:
        """Have a reader find the columns, if nothing was written and there is nothing, as Spark does for a DataFrame
        without rows. Raises :class:`~stormlet.errors.SparkFailed`."""
        if (
            self._has_written
            or isinstance(self._tables, LearnedTables)
            or not self._destination.is_sparks_own
        ):
            return
        nothing = self._frames.empty(self._schema)

        def write() -> None:
            if not self._destination.is_there(self._session):
                self._destination.append(nothing)

        self._in_turn(f"writing no rows to {self._destination}", write)

    def interrupt(self) -> None:
        """Make a write that is under way in another thread fail soon."""
        self._interrupted = True
        with suppress(Exception):  # a JVM that is gone writes nothing, either
            self._session.sparkContext.cancelJobsWithTag(self._tag)

    def _check(self, schema: StructType | None) -> None:
        if schema is None:  # of files whose columns are not known all but these can be checked
            nothing = self._session.createDataFrame([], "value string")
            replace(self._destination, partition_by=()).check(nothing)
        else:
            self._destination.check(self._frames.empty(schema))

    def _append(self, table: pa.Table) -> None:
        self._has_written = True

        def append() -> None:
            self._destination.append(self._frames.of(table, self._schema))

        self._in_turn(f"writing {counted(table.num_rows, 'row')} to {self._destination}", append)

    def _begin(self, schema: StructType) -> None:
        def begin() -> None:
            self._destination.begin(self._frames.empty(schema))

        self._in_turn(f"beginning with {self._destination}", begin)

    def _in_turn(self, what: str, write: Callable[[], None]) -> None:
        with self._destination.turn:
            if self._interrupted:
                raise SparkFailed(f"{what} was interrupted")
            try:
                write()
            except Exception as error:
                raise SparkFailed(f"{what} failed: {summary(error)}") from error

    @property
    def _schema(self) -> StructType:
        return self._tables.schema

    def _tables_of(self, schema: StructType) -> Tables:
        from pyspark.sql.types import AtomicType

        unknown = [name for name in self._destination.partition_by if name not in schema.names]
        if unknown:
            raise Misfit(f"partition_by: there is no column {unknown[0]!r}, only {', '.join(schema.names)}")
        self._check_names(schema.names, self._destination.partition_by)
        for name in self._destination.partition_by:
            kind = schema[name].dataType
            if not isinstance(kind, AtomicType):
                raise Misfit(
                    f"partition_by: column {name!r} is of type {kind.typeName()}, and folders are named by plain values"
                )
        return Tables(schema, self._destination.partition_by)

    def _check_names(self, columns: Sequence[str], partition_by: Sequence[str]) -> None:
        """Raise :class:`~stormlet.spark.arrow.columns.Misfit` for what Spark would refuse with each write."""
        if (name := _again(partition_by)) is not None:
            raise Misfit(f"partition_by names {name!r} twice")
        if self._destination.path is not None and partition_by and len(partition_by) == len(columns):
            raise Misfit("partition_by names all columns, and a file needs one more")
        exact = f"{self._session.conf.get('spark.sql.caseSensitive', 'false')}".lower() == "true"
        if (name := _again(columns, str if exact else str.lower)) is not None:
            raise Misfit(f"two columns are called {name!r}, as Spark reads names; rename one")


class EpochWriter(SparkWriter):
    """Writes an epoch as the directory ``source=<key>/epoch=<number>``, which is replaced as a whole."""

    destination = ""
    """The place it writes to, once it is open."""
    _folder: Folder

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """See :meth:`SparkWriter.open`."""
        super().open(inputs, first=first)
        check_epoch_columns("exactly_once=True", self._schema)
        path = self._destination.path
        assert path is not None, "a table is refused before"
        self._folder = Folder(self._session, path)
        self.destination = f"{self._destination.format} at {self._folder}"

    def epochs_by_line(self, owner: str) -> Iterator[tuple[str, str, int]]:
        """Iterate over what a sink has written: each directory, its line of epochs, and the last epoch there."""
        for name in self._folder.names():
            found = re.fullmatch(rf"{SOURCE}={re.escape(owner)}-([^-]+)", name)
            if found is not None:
                place = self._folder.below(name)
                yield place, found[1], max(_epochs_in(Folder(self._session, place)), default=0)

    def old_epochs(self) -> Iterator[str]:
        """Iterate over the directories that were written before the epochs of a DataFrame were those of a state."""
        for name in self._folder.names():
            if re.fullmatch(rf"{SOURCE}=frame-[0-9a-f]{{16}}-\d+", name):
                yield self._folder.below(name)

    def claim_line(self, what: str, query: str, owner: str) -> None:
        """See :func:`claim_line`."""
        claim_line(self._session, self._folder, what, query, owner)

    def write_nothing(self, source: SourceKey) -> None:
        """Write an epoch without rows where there is nothing at all. Raises :class:`~stormlet.errors.SparkFailed`."""
        if not self._folder.names():
            self.write_epoch(source, 0, [])

    def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[pa.Table]) -> None:
        """Replace all rows of the epoch by these, durably. Raises :class:`~stormlet.errors.SparkFailed`."""
        import pyarrow as pa

        rows, schema = sum(table.num_rows for table in tables), self._schema

        def replace() -> None:
            files = 1 + rows // ROWS_PER_FILE
            frame = (
                self._frames.of(pa.concat_tables(tables), schema, files)
                if rows
                else self._frames.empty(schema)
            )
            replace_epoch(self._destination, self._folder, source, epoch, frame)

        folder = self._destination.below(*epoch_names(source, epoch))
        self._in_turn(f"writing {counted(rows, 'row')} to {folder}", replace)


def claim_line(session: SparkSession, folder: Folder, what: str, query: str, owner: str) -> None:
    """Note that the rows of a query are a sink's, before the first of them. ``what`` is the sink, and ``owner`` what it
    is called in every run: the id of a query lasts no longer than its checkpoint.

    Raises :class:`~stormlet.errors.NotExactlyOnce` if the same sink has written rows of another query.
    """
    mine = f"{SOURCE}={query}"
    for name in folder.names():
        if not name.startswith(f"{SOURCE}=query-") or name == mine:
            continue
        other = Folder(session, folder.below(name))
        if other.read(OWNER) == owner.encode() and any(True for _ in _epochs_in(other)):
            raise NotExactlyOnce(
                f"{what}: {other} has rows of {name.removeprefix(f'{SOURCE}=')}, written by the same sink, and this "
                f"is {query}, whose checkpoint is another one: they would be there twice; bring its "
                "checkpoint back, or remove these rows; if this is another stream, give its topology another name, or "
                "write elsewhere"
            )
    note = Folder(session, folder.below(mine))
    if note.read(OWNER) != owner.encode():
        note.write(OWNER, owner.encode())


def _epochs_in(folder: Folder) -> Iterator[int]:
    for name in folder.names():
        kind, _, number = name.partition("=")
        if kind == EPOCH and number.isdecimal():
            yield int(number)


def epoch_names(source: SourceKey, epoch: int) -> tuple[str, str]:
    """Return the names of the directory of an epoch, and of the one that it is in."""
    return f"{SOURCE}={source}", f"{EPOCH}={epoch}"


def replace_epoch(
    destination: Destination, folder: Folder, source: SourceKey, epoch: int, rows: DataFrame
) -> None:
    """Replace all rows of an epoch by these, durably. ``folder`` is that of the destination."""
    names = epoch_names(source, epoch)
    remove_marker(folder, *names)
    destination.below(*names).replace(rows)
    folder.sync(*names)


def remove_marker(folder: Folder, *below: str) -> None:
    """Have readers take what is there for whole no longer: Spark removes it file by file, and may be killed
    meanwhile."""
    folder.remove("/".join((*below, MARKER)))


def check_epoch_columns(where: str, schema: StructType) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` if a sink of epochs has a column like those that the names of its
    directories are to a reader."""
    taken = [name for name in schema.names if name.lower() in (SOURCE, EPOCH)]
    if taken:
        raise InvalidTopology(
            f"{where} writes to directories source=.../epoch=..., which are columns to a reader, and there is a column "
            f"{taken[0]!r} already; rename it"
        )


def sink_schema(given: object, inputs: Sequence[Schema]) -> StructType | None:
    """The schema that was given (Spark's DDL, a StructType, a ``pyarrow.Schema`` or a record type) or, without one,
    that of the record type which all inputs share; None if all carry record batches, which have their own. DDL needs
    a session.

    Raises :class:`~stormlet.errors.InvalidTopology` if there is none, for columns that a stream does not have and for
    types without columns.
    """
    if given is None:
        return _shared(inputs)
    schema = _read(given)
    for stream in inputs:
        unknown = [name for name in schema.names if stream.fields is not None and name not in stream.fields]
        if unknown:
            raise InvalidTopology(
                f"{stream.name} has no {', '.join(map(repr, unknown))} for the sink's columns"
            )
    return schema


def _shared(inputs: Sequence[Schema]) -> StructType | None:
    from pyarrow import RecordBatch

    declared = inputs[0].declared
    if all(stream.declared is RecordBatch for stream in inputs):
        return None
    if declared is None or any(stream.declared != declared for stream in inputs):
        names = ", ".join(dict.fromkeys(stream.name for stream in inputs))
        raise InvalidTopology(
            f"the columns are not known from the inputs ({names}); give schema=, such as "
            f'DataFrameSink(..., schema="word string, count bigint"), or annotate what they emit with a record type'
        )
    return schema_of_record(declared)


def _again(names: Sequence[str], as_read: Callable[[str], str] = str) -> str | None:
    """The first name that is the same as one before it."""
    before = set[str]()
    for name in names:
        if as_read(name) in before:
            return name
        before.add(as_read(name))
    return None


def _of_arrow(given: pa.Schema) -> StructType:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    for each in given:
        try:
            from_arrow_schema(pa.schema([each]))
        except PySparkException as error:
            raise InvalidTopology(
                f"schema=: column {each.name!r} is {each.type}, which Spark has no type for"
            ) from error
    return from_arrow_schema(given, prefer_timestamp_ntz=True)


def _read(given: object) -> StructType:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(given, StructType):
        return given
    if isinstance(given, pa.Schema):
        return _of_arrow(given)
    if class_below(given) is not None:
        return schema_of_record(given)
    if not isinstance(given, str):
        raise InvalidTopology(
            f"schema={given!r} is no schema; give Spark's DDL, a StructType, a pyarrow.Schema or a record type"
        )
    try:
        return cast("StructType", StructType.fromDDL(given))
    except PySparkException as error:
        raise InvalidTopology(f"schema={given!r} is no schema: {summary(error)}") from error
