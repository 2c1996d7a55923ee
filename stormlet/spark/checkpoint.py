"""Where a source's checkpoint is kept: one small file, replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

import msgspec

from stormlet.errors import InvalidTopology, SparkFailed
from stormlet.spark.claims import Claim
from stormlet.spark.disks import sync
from stormlet.spark.keys import Key
from stormlet.spark.packing import ALL

MOST_ROWS = 2**63 - 1


class Fingerprint(msgspec.Struct, frozen=True):
    """What tells one DataFrame from another, in every process."""

    columns: tuple[str, ...]
    """What is read."""
    schema: str
    plan: str
    """The digest of the optimised plan."""
    partitions: int
    files: str
    """The digest of each partition's files: their paths, ranges, sizes and times."""
    order_by: tuple[str, ...] = ()
    """The columns of the key that gives the rows their order; then all of them count as one partition."""
    epoch_rows: int | None = None
    """How many rows an epoch has, for a source that gives epochs."""


class Checkpoint(msgspec.Struct, frozen=True):
    """What a file holds."""

    fingerprint: Fingerprint
    done: dict[int, int]
    """Partition -> how many of its first rows are done, or :data:`~stormlet.spark.packing.ALL`."""
    key: Key = ()
    """With ``order_by``, that of the last row done."""
    epochs: int = 0
    """With ``epoch_rows``, how many epochs are done."""
    sinks: tuple[str, ...] = ()
    """Where exactly-once sinks have written these epochs to."""

    @property
    def is_possible(self) -> bool:
        """Whether a run can have written this: a damaged file may be well-formed."""
        partitions = range(1 if self.fingerprint.order_by else self.fingerprint.partitions)
        return (
            all(each in partitions and ALL <= rows <= MOST_ROWS for each, rows in self.done.items())
            and len(self.key) in (0, len(self.fingerprint.order_by))
            and self.epochs >= 0
        )


class Sealed(msgspec.Struct, frozen=True):
    """A checkpoint as it is written, which may have been damaged since."""

    checksum: int
    checkpoint: msgspec.Raw

    @property
    def is_whole(self) -> bool:
        """Whether it is what was written, byte for byte."""
        return crc32(self.checkpoint) == self.checksum


class CheckpointFile:
    """The file of one source, which is its own from :meth:`load` to :meth:`release`. Methods block."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()  # whatever becomes of the current directory
        self._next = self._path.with_name(f"{self._path.name}.next")
        self._claim = Claim(self._path)

    def load(self, fingerprint: Fingerprint) -> Checkpoint:
        """What is done; nothing if there is no file.

        Raises :class:`~stormlet.errors.InvalidTopology` if the file is of another DataFrame, or no checkpoint, or
        if another source has it.
        """
        self._claim.take()
        try:
            return self._found(fingerprint)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Another run may have the file."""
        self._claim.release()

    def _found(self, fingerprint: Fingerprint) -> Checkpoint:
        try:
            found = self._decoded(self._path.read_bytes())
        except FileNotFoundError:
            return Checkpoint(fingerprint, {})
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidTopology(f"{self._path} cannot be read as a checkpoint: {error}") from error
        differs = [
            name
            for name in fingerprint.__struct_fields__
            if getattr(found.fingerprint, name) != getattr(fingerprint, name)
        ]
        if differs == ["epoch_rows"]:
            raise InvalidTopology(_of_other_epochs(self._path, found.fingerprint.epoch_rows))
        if differs:
            raise InvalidTopology(
                f"{self._path} is the checkpoint of another DataFrame: its {' and '.join(differs)} differ; read the "
                f"same files in the same way (partitions depend on the number of cores, too), or remove it to begin "
                f"anew"
            )
        if not found.is_possible:
            raise self._damaged()
        return found

    def _decoded(self, content: bytes) -> Checkpoint:
        try:
            sealed = msgspec.json.decode(content, type=Sealed)
        except msgspec.ValidationError:  # of before there were checksums, or none at all
            return msgspec.json.decode(content, type=Checkpoint)
        if not sealed.is_whole:
            raise self._damaged()
        return msgspec.json.decode(sealed.checkpoint, type=Checkpoint)

    def _damaged(self) -> InvalidTopology:
        return InvalidTopology(f"the checkpoint {self._path} is damaged; remove it to begin anew")

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


def encoded(checkpoint: Checkpoint) -> bytes:
    """What the file holds of it."""
    content = msgspec.json.encode(checkpoint)
    return msgspec.json.encode(Sealed(crc32(content), msgspec.Raw(content)))


def _of_other_epochs(path: Path, rows: int | None) -> str:
    if rows is None:
        return f"{path} is the checkpoint of a run without epochs; leave out epoch_rows=, or take another checkpoint"
    return (
        f"{path} is the checkpoint of a run in epochs of {rows} rows; give epoch_rows={rows}, or, to begin anew, "
        f"remove it and what exactly-once sinks have written"
    )
