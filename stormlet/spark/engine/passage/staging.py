"""The folder in which a run keeps what is not checked yet, and its result what was kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import sleep
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import finalize

from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.passage.arrow_rows import rows_in, rows_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

PAUSE: Final = 0.05
"""Seconds between two looks at a folder."""
QUIET: Final = 10
"""Looks one after the other at which it must be away until it counts as removed. They are counted, as where the machine
stands still those who write stand still, too."""
LONGEST: Final = 100
"""Looks after which it is left to itself."""
PART: Final = "part"
LITTLE: Final = 4 << 20
"""Bytes of rows that the driver reads itself: a job of Spark's would cost more."""
ROWS: Final = 10
"""Rows that it reads at a time."""
RUN: Final = "run"
"""The part of a folder with the rows of one passage."""
GROUPS: Final = "groups"
"""That with its key groups, which later epochs may refer to."""


def keep(session: SparkSession, rows: DataFrame, place: str, *, in_parts: bool) -> Kept:
    """Write what the last stage leaves into a folder, or into both parts of it."""
    from pyspark.sql import functions as f

    if in_parts:
        part = f.when(rows["kind"] == int(Kind.KEYED), GROUPS).otherwise(RUN)
        rows.withColumn(PART, part).write.partitionBy(PART).parquet(place)
    else:
        rows.write.parquet(place)
    return Kept(session, place)


def part_of(place: str, part: str) -> str:
    """Return the folder of one part; there is none if the passage has left nothing for it."""
    return f"{place}/{PART}={part}"


class Staging:
    """A folder that is removed with this object, and at the end of the process at the latest."""

    def __init__(self, parent: str | None) -> None:
        """Make a folder in ``parent``, or in the folder for temporary files. Raises :class:`OSError`."""
        self.path = Path(mkdtemp(prefix="stormlet-", dir=parent))
        self._removal = finalize(self, rmtree, self.path, ignore_errors=True)

    def remove(self, name: str) -> None:
        """Remove a folder in it, if there is one."""
        rmtree(self.path / name, ignore_errors=True)

    def remove_from_writers(self) -> None:
        """Remove it now, though tasks that were cancelled may write into it, and make it anew, for a moment longer."""
        away = 0
        for _ in range(LONGEST):
            away += 1
            if self.path.exists():
                rmtree(self.path, ignore_errors=True)
                away = 0
            elif away == QUIET:
                break
            sleep(PAUSE)
        self._removal()


class Kept:
    """The rows that the last stage has left in folders."""

    def __init__(self, session: SparkSession, *folders: str) -> None:
        self.session = session
        self._folders = folders

    def and_also(self, other: Kept) -> Kept:
        """Return the rows of both."""
        return Kept(self.session, *self._folders, *other._folders)

    @cached_property
    def frame(self) -> DataFrame:
        """All of them, read by Spark."""
        return rows_in(self.session, *self._folders)

    @cached_property
    def is_little(self) -> bool:
        """True if this machine has the files, and it is so little that Spark need not read them."""
        files = self._files()
        if not files or sum(file.stat().st_size for file in files) > LITTLE:
            return False
        return sum(map(_size, files)) <= LITTLE

    def here(self) -> Iterator[pa.RecordBatch]:
        """Iterate over all of them, read by this process."""
        from pyarrow.parquet import ParquetFile

        for file in self._files():
            with ParquetFile(file) as reader:
                yield from reader.iter_batches(batch_size=ROWS, use_threads=False)

    def rows(self, kind: Kind, targets: Collection[int] | None = None) -> Iterator[Row]:
        """Iterate over the rows of one kind, in the order of their producers; with ``targets`` over those for these
        tasks."""
        if not self.is_little:
            return self._read(kind, targets)
        all_rows = (row for batch in self.here() for row in rows_of(batch) if row.kind == kind)
        wanted = (row for row in all_rows if targets is None or row.target in targets)
        return iter(sorted(wanted, key=lambda row: (row.producer, row.number)))

    def _files(self) -> Sequence[Path]:
        return [file for folder in self._folders for file in sorted(Path(folder).rglob("*.parquet"))]

    def _read(self, kind: Kind, targets: Collection[int] | None) -> Iterator[Row]:
        rows = self.frame.where(self.frame["kind"] == int(kind))
        wanted = rows if targets is None else rows.where(rows["target"].isin(list(targets)))
        ordered = wanted.coalesce(1).sortWithinPartitions("producer", "number").toLocalIterator()
        return (Row(*each) for each in cast("Iterable[tuple[Any, ...]]", ordered))


def _size(file: Path) -> int:
    """Bytes of the rows in a file, which is compressed."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as reader:
        groups = range(reader.metadata.num_row_groups)
        return sum(reader.metadata.row_group(group).total_byte_size for group in groups)
