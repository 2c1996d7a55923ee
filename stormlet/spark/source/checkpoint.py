"""The checkpoint of a source: one small file, replaced as a whole, and the account of the rows that it says are
done."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from stormlet.errors import InvalidTopology, SparkFailed
from stormlet.files import sync
from stormlet.spark.files import Claim
from stormlet.spark.source.ordering import WHOLE, Key, OrderedRead
from stormlet.spark.source.plans import Fingerprint, differences, fingerprint_in_order, fingerprint_of
from stormlet.spark.source.reading import ALL, Done, Read
from stormlet.state.places import DATABASE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_LIMIT = 2**63 - 1


class Checkpoint(msgspec.Struct, frozen=True):
    """Content of the file."""

    fingerprint: Fingerprint
    done: dict[int, int]
    """Partition -> number of its first rows that are done, or :data:`~stormlet.spark.source.reading.ALL`."""
    key: Key = ()
    """With ``order_by``, the key of the last row done."""
    epochs: int = 0
    """The number of epochs done, in a checkpoint of before epochs were kept in a state file."""
    sinks: tuple[str, ...] = ()
    """The places to which exactly-once sinks had written these epochs."""

    @property
    def is_possible(self) -> bool:
        """True if a run can have written this: a damaged file may be well-formed."""
        partitions = range(1 if self.fingerprint.order_by else self.fingerprint.partitions)
        return (
            all(each in partitions and ALL <= rows <= ROWS_LIMIT for each, rows in self.done.items())
            and len(self.key) in (0, len(self.fingerprint.order_by))
            and self.epochs >= 0
        )


class Sealed(msgspec.Struct, frozen=True):
    """A checkpoint in its file, with a checksum, as the file may be damaged later."""

    checksum: int
    checkpoint: msgspec.Raw

    @property
    def is_whole(self) -> bool:
        """True if it is as it was written, byte for byte."""
        return crc32(self.checkpoint) == self.checksum


class CheckpointFile:
    """The file of one source, which owns it from :meth:`load` to :meth:`release`. Methods block."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()  # the current directory may change
        self._next = self._path.with_name(f"{self._path.name}.next")
        self._claim = Claim(self._path)

    def load(self, fingerprint: Fingerprint) -> Checkpoint:
        """Read the checkpoint; an empty one if there is no file.

        Raises :class:`~stormlet.errors.InvalidTopology` if the file is of another DataFrame, or no checkpoint, or if
        another source owns it.
        """
        self._claim.take()
        try:
            return self._found(fingerprint)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Leave the file to other runs."""
        self._claim.release()

    def _found(self, fingerprint: Fingerprint) -> Checkpoint:
        try:
            content = self._path.read_bytes()
            if content.startswith(DATABASE):
                raise InvalidTopology(
                    f"{self._path} is the checkpoint of a run in epochs; give epoch_rows=, or take another checkpoint"
                )
            found = _decoded(self._path, content)
        except FileNotFoundError:
            return Checkpoint(fingerprint, {})
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidTopology(f"{self._path} cannot be read as a checkpoint: {error}") from error
        if found.fingerprint.epoch_rows is not None:
            raise InvalidTopology(_of_old_epochs(self._path, found))
        differs = differences(found.fingerprint, fingerprint)
        if differs:
            raise InvalidTopology(
                f"{self._path} is the checkpoint of another DataFrame, in its {' and '.join(differs)}; read the "
                f"same files in the same way (partitions depend on the number of cores, too), or remove it to begin "
                f"anew"
            )
        if not found.is_possible:
            raise _damaged(self._path)
        return found

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the file: whenever the process dies, there is the old one or the new one.

        Raises :class:`~stormlet.errors.SparkFailed`.
        """
        try:
            with self._next.open("wb") as file:
                file.write(encoded(checkpoint))
                file.flush()
                os.fsync(file.fileno())
            self._next.replace(self._path)
            sync(self._path.parent)
        except OSError as error:
            raise SparkFailed(f"the checkpoint {self._path} cannot be written: {error}") from error


def _decoded(path: Path, content: bytes) -> Checkpoint:
    try:
        sealed = msgspec.json.decode(content, type=Sealed)
    except msgspec.ValidationError:  # written before there were checksums, or no checkpoint
        return msgspec.json.decode(content, type=Checkpoint)
    if not sealed.is_whole:
        raise _damaged(path)
    return msgspec.json.decode(sealed.checkpoint, type=Checkpoint)


def _damaged(path: Path) -> InvalidTopology:
    return InvalidTopology(f"the checkpoint {path} is damaged; remove it to begin anew")


def encoded(checkpoint: Checkpoint) -> bytes:
    """The bytes of a checkpoint in its file."""
    content = msgspec.json.encode(checkpoint)
    return msgspec.json.encode(Sealed(crc32(content), msgspec.Raw(content)))


def refuse_rows_done(path: Path) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` where a state file is wanted, and there is a checkpoint of rows:
    of a run without epochs, or of before epochs were kept in a state file."""
    try:
        with path.open("rb") as file:
            if file.read(1) != b"{":
                return
        found = _decoded(path, path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # what opens the state refuses it, too
    if found.fingerprint.epoch_rows is not None:
        raise InvalidTopology(_of_old_epochs(path, found))
    raise InvalidTopology(
        f"{path} is the checkpoint of a run without epochs; leave out epoch_rows=, or take another checkpoint"
    )


def _of_old_epochs(path: Path, found: Checkpoint) -> str:
    return (
        f"{path} is the checkpoint of {found.epochs} epochs as an earlier version of stormlet has kept them, by which "
        f"this one cannot go on; finish with that version, or, to begin anew, remove it together with what it has had "
        f"written to {' and '.join(found.sinks) or 'sinks'}, as rows would be there twice"
    )


class Bookmark:
    """The checkpoint of one source in its DataFrame. Methods block; :meth:`load` comes first, :meth:`release`
    last."""

    def __init__(
        self,
        frame: DataFrame,
        read: Read,
        columns: Sequence[str],
        file: CheckpointFile,
    ) -> None:
        self._frame = frame
        self._ordered = read if isinstance(read, OrderedRead) else None
        self._columns = columns
        self._file = file
        self.fingerprint: Fingerprint
        """The DataFrame's, after :meth:`load`."""

    def load(self) -> Checkpoint:
        """Read the checkpoint. Raises :class:`~stormlet.errors.InvalidTopology`: see :meth:`CheckpointFile.load`."""
        if self._ordered is None:
            self.fingerprint = fingerprint_of(self._frame, self._columns)
        else:
            self.fingerprint = fingerprint_in_order(self._frame, self._columns, self._ordered.order_by)
        found = self._file.load(self.fingerprint)
        if self._ordered is not None:
            self._ordered.trail.begin(found.done.get(WHOLE, 0), found.key)
        return found

    def save(self, done: Done) -> None:
        """Record durably that these rows are done. Raises :class:`~stormlet.errors.SparkFailed`."""
        self._file.save(Checkpoint(self.fingerprint, dict(done), self._key_of(done)))

    def release(self) -> None:
        """Leave the checkpoint to other runs."""
        self._file.release()

    def _key_of(self, done: Done) -> Key:
        """The key of the last row done; empty without ``order_by``, and when nothing is left to read."""
        rows = done.get(WHOLE, 0)
        if self._ordered is None or rows == ALL:
            return ()
        self._ordered.trail.forget(rows)
        return self._ordered.trail.last_of(rows)


class DoneRows:
    """The account of the rows that were emitted, in order, and settled, in any order.

    It keeps only the open messages: as many as are pending, however many were settled after the oldest of these.
    """

    def __init__(self, done: Mapping[int, int]) -> None:
        self._done = dict(done)
        self._begun: dict[int, int] = {}
        self._emitted: dict[int, int] = {}
        self._open: dict[int, dict[int, None]] = {}

    def emitted(self, partition: int, row: int, rows: int) -> None:
        """Note a message of ``rows`` rows, from ``row`` on."""
        self._begun.setdefault(partition, row)
        self._emitted[partition] = row + rows
        self._open.setdefault(partition, {})[row] = None

    def settled(self, partition: int, row: int) -> None:
        """Note that the message that begins with this row is done."""
        del self._open[partition][row]

    def prefixes(self, read: int) -> dict[int, int]:
        """Partition -> number of its first rows that are done. ``read`` is the partition being read: of those before
        it all rows were emitted, and where none is open all are done."""
        for partition, begun in self._begun.items():
            prefix = next(iter(self._open[partition]), self._emitted[partition])
            if prefix > begun:
                self._done[partition] = prefix
        for partition in range(read):
            if not self._open.get(partition):
                for account in (self._begun, self._emitted, self._open):
                    account.pop(partition, None)
                self._done[partition] = ALL
        return dict(self._done)
