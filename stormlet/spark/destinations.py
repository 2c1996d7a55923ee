"""Where a sink writes to, and how."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode: TypeAlias = Literal["append", "overwrite", "error"]
"""What becomes of what is there when a run begins: it stays, it is replaced, or the start is refused."""

_turns: defaultdict[str, Lock] = defaultdict(Lock)
"""By destination: held while this process writes there."""

ALL_OF_IT = {"partitionOverwriteMode": "static"}
"""What an overwrite replaces. Otherwise a session's "dynamic" would leave the partitions that have no row now."""


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
        """To be held during a write. Spark's committer keeps the files of all writes to one path in one temporary
        directory, and who is done first removes it: of two writes at a time, both could lose rows."""
        return _turns[f"{self.table or self.path}"]

    def below(self, *folders: str) -> Destination:
        """A directory within this one."""
        return replace(self, path="/".join((f"{self.path}".rstrip("/"), *folders)))

    def begin(self, nothing: DataFrame) -> None:
        """Before the first row of a run: write a DataFrame without rows, as ``mode`` says."""
        if self.mode != "append":
            self._write(nothing, self.mode, ALL_OF_IT)

    def append(self, rows: DataFrame) -> None:
        """Write one batch."""
        self._write(rows, "append", {})

    def replace(self, rows: DataFrame) -> None:
        """Have these rows, and no others, be there."""
        self._write(rows, "overwrite", ALL_OF_IT)

    def _write(self, rows: DataFrame, mode: Mode, options: Mapping[str, str]) -> None:
        writer = rows.write.format(self.format).mode(mode).options(**{**self.options, **options})
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        if self.path is None:
            assert self.table is not None
            writer.saveAsTable(self.table)
        else:
            writer.save(self.path)
