"""The folder in which a stream on Spark keeps its last epoch, in Spark's own checkpoint of the query.

An epoch has a folder of its own. Its rows are written there first: those of streams that leave, and the states of the
bolts. The record comes last, when the ledger adds up and everything was handed over. An epoch with a record is done and
never executed again. A folder without one is of an epoch that was interrupted, and is written anew.

Of keyed state an epoch writes the groups that it has changed. Its record names those of earlier epochs for the others,
so that of these the files with groups stay as long as the last record names one in them
(:mod:`stormlet.spark.engine.stream.written`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from stormlet.core.state.commits import Shape, StateId
from stormlet.errors import InvalidTopology, SparkFailed, StateUnusable
from stormlet.model.description import Description
from stormlet.spark.engine.partition.keyed.carried import check_shapes
from stormlet.spark.engine.passage.staging import GROUPS, PART, RUN, part_of
from stormlet.spark.engine.planning.numbering import Place
from stormlet.spark.engine.stream.written import Written
from stormlet.spark.failures import summary
from stormlet.spark.files import Folder
from stormlet.spark.stream.keeper import EPOCHS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: Final = "rows"
RECORD: Final = "done.json"


class EpochRecord(msgspec.Struct, frozen=True):
    """The record of an epoch that is done."""

    epoch: int
    """The number of its micro-batch."""
    query: str
    """The id of the query, the same in each run from one checkpoint."""
    topology: str
    tasks: Mapping[str, Sequence[Place]]
    """The places of the tasks of each bolt that may have state."""
    states: int
    """The XOR of the hashes of all rows with the state of ordinary bolts, those of the driver left out."""
    driver: bytes
    """The state of the bolts in the driver."""
    now: float = 0.0
    """The time for its bolts with keyed state, in seconds since 1970."""
    groups: Sequence[Written] = ()
    """All keyed state."""
    keyed: Mapping[str, Sequence[Place]] = {}
    """The places of the tasks of each bolt with keyed state."""
    shapes: Sequence[tuple[StateId, Shape]] = ()
    """The types of their states."""
    files: Mapping[str, int] = {}
    """The names of the files with all other rows, with their bytes."""


class Checkpoint:
    """Keeps the last epoch of one stream."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session
        self._path = path
        self._folder = Folder(session, f"{path.rstrip('/')}/{EPOCHS}")
        self._bare: set[str] = set()
        """The folders of epochs in which nothing is left but groups."""
        self.last = self._newest()
        """The record of the last epoch; None before the first."""

    def check(self, topology: str, tasks: Mapping[str, Sequence[Place]]) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` if the last epoch was one of another topology, or had other
        tasks: each state belongs to one."""
        last = self.last
        if last is None:
            return
        if last.topology != topology:
            raise InvalidTopology(
                f"checkpoint {self._path} is one of topology {last.topology!r}, and this is {topology!r}; give each a "
                f"checkpoint of its own"
            )
        for id in {**last.tasks, **tasks}:
            before, now = list(last.tasks.get(id, ())), list(tasks.get(id, ()))
            if before != now:
                raise InvalidTopology(_changed(self._path, id, before, now))

    def check_states(self, description: Description) -> None:
        """Raise it if the last epoch had keyed state that the topology does not declare as it was (law K5)."""
        try:
            check_shapes(description, dict(() if self.last is None else self.last.shapes))
        except StateUnusable as error:
            raise InvalidTopology(f"checkpoint {self._path}: {error}") from error

    def check_files(self) -> None:
        """Raise it unless the files of rows and key groups are those that the record of the last epoch names."""
        last = self.last
        if last is None:
            return
        if last.files:  # none are named by a record of an earlier version
            self._check(last.epoch, self._run_of(last.epoch), last.files, "rows")
        for each in last.groups:
            self._check(each.epoch, self._place_of(each.epoch), each.files, "keyed state")

    def _check(self, epoch: int, place: str, files: Mapping[str, int], kind: str) -> None:
        there = _files_in(self._session, place)
        for name in {**files, **there}:
            fault = _fault(epoch, kind, files.get(name), there.get(name))
            if fault:
                raise InvalidTopology(f"checkpoint {self._path}: {place}/{name} {fault}")

    def is_done(self, epoch: int, query: str) -> bool:
        """True if this epoch of a query has a record, so that only Spark's own note of it is missing. Raise
        :class:`~stormlet.errors.SparkFailed` if it cannot follow the last one."""
        if self.last is not None and self.last.query != query:
            raise SparkFailed(
                f"checkpoint {self._path} has the states of another query, whose own files are gone: begin with "
                f"another checkpoint"
            )
        last = -1 if self.last is None else self.last.epoch
        if epoch == last:
            return True
        if epoch != last + 1:
            expected = f"epoch {last} was the last one here" if last >= 0 else "there is no epoch here yet"
            raise SparkFailed(
                f"checkpoint {self._path} goes on with epoch {epoch}, and {expected}: the states before it are "
                f"missing. A run in process keeps none; give the stream on Spark a checkpoint of its own"
            )
        return False

    def begin(self, epoch: int) -> str:
        """Return the place for the rows of an epoch, empty."""
        self._folder.remove(str(epoch))
        return self._folder.below(str(epoch), ROWS)

    def rows_of_last(self) -> str | None:
        """Return the place of the rows of the last epoch; None before the first."""
        return None if self.last is None else self._folder.below(str(self.last.epoch), ROWS)

    def groups_of(self, kept: Sequence[Written]) -> Sequence[str]:
        """Return the folders with these groups."""
        return [self._place_of(each.epoch) for each in kept]

    def groups_written(self, epoch: int) -> Mapping[str, int]:
        """Return the names of the files with groups that an epoch has written, with their bytes."""
        return _files_in(self._session, self._place_of(epoch))

    def rows_written(self, epoch: int) -> Mapping[str, int]:
        """Return the names of the files with all its other rows, with their bytes."""
        return _files_in(self._session, self._run_of(epoch))

    def end(self, record: EpochRecord) -> None:
        """Note durably that an epoch is done, and forget what it does not refer to."""
        name = str(record.epoch)
        self._folder.sync(name)
        Folder(self._session, self._folder.below(name)).write(RECORD, msgspec.json.encode(record))
        self.last = record
        needed = {str(each.epoch) for each in record.groups}
        for other in self._folder.names():
            if other == name:
                continue
            if other in needed:
                self._strip(other)
            else:
                self._folder.remove(other)

    def _strip(self, name: str) -> None:
        """Leave nothing in the folder of an epoch but its groups."""
        if name not in self._bare:
            self._folder.remove(f"{name}/{RECORD}")
            self._folder.remove(part_of(f"{name}/{ROWS}", RUN))
            self._bare.add(name)

    def _place_of(self, epoch: int) -> str:
        return part_of(self._folder.below(str(epoch), ROWS), GROUPS)

    def _run_of(self, epoch: int) -> str:
        rows = self._folder.below(str(epoch), ROWS)
        parts = Folder(self._session, rows).names()
        return part_of(rows, RUN) if any(name == f"{PART}={RUN}" for name in parts) else rows

    def _newest(self) -> EpochRecord | None:
        numbers = sorted((int(name) for name in self._folder.names() if name.isdecimal()), reverse=True)
        for number in numbers:
            record = self._record_of(number)
            if record is not None:
                return record
        return None

    def _record_of(self, number: int) -> EpochRecord | None:
        from py4j.protocol import Py4JError

        try:
            content = Folder(self._session, self._folder.below(str(number))).read(RECORD)
            return None if content is None else msgspec.json.decode(content, type=EpochRecord)
        except (Py4JError, msgspec.MsgspecError) as error:
            raise InvalidTopology(
                f"checkpoint {self._path}: the record of epoch {number} cannot be read: {summary(error)}; bring "
                f"{RECORD} of that epoch back, or begin with another checkpoint"
            ) from error


def _files_in(session: SparkSession, place: str) -> Mapping[str, int]:
    files = Folder(session, place).lengths()
    return {name: length for name, length in files.items() if name.endswith(".parquet")}


def _fault(epoch: int, kind: str, length: int | None, there: int | None) -> str | None:
    """Return the fault of a file, by the bytes that it should have and those that it has, with the way out."""
    if there is None:
        return f"is missing, and has {kind} of epoch {epoch}; bring it back, or use another checkpoint"
    if length is None:
        return f"is none of the files that epoch {epoch} has written; take it away"
    if length != there:
        return (
            f"has {there:,} bytes, and epoch {epoch} has written {length:,}; bring back what was there, or use "
            f"another checkpoint"
        )
    return None


def _changed(path: str, bolt: str, before: Sequence[Place], now: Sequence[Place]) -> str:
    if not now:
        return (
            f"checkpoint {path} has the state of bolt {bolt!r}, which is not there any more, or is a function now; "
            f"bring it back, or begin with another checkpoint"
        )
    if not before:
        return f"checkpoint {path} was written without bolt {bolt!r}; begin with another checkpoint"
    if len(before) != len(now):
        return (
            f"checkpoint {path} was written with {len(before)} tasks of bolt {bolt!r}, and now there are {len(now)}: "
            f"each state belongs to one; set parallelism={len(before)}, or begin with another checkpoint"
        )
    return (
        f"checkpoint {path} was written when bolt {bolt!r} stood elsewhere in the topology; bring back what was before "
        f"and beside it, or begin with another checkpoint"
    )
