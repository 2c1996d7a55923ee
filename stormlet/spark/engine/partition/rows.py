"""The rows that stages hand on: chunks of tuples, accounts, failures.

A row is addressed to a partition of a stage, or is for the driver (:class:`Kind`). A chunk has up to 1000 values from
one task for one task. Its roots and words are packed 64-bit numbers, so that they cost neither objects nor text.

A *word* is the id of one tuple between two stages. The stage that emits the tuple draws it, and the stage that has
settled it takes it back: both are XORed into their accounts (:mod:`stormlet.spark.engine.partition.account`). Words
depend on the seed, the stage, the partition and their place there, and not on the attempt that Spark makes at the task.
An attempt that repeats the first one therefore makes the same rows, and Spark may mix the two. Where they differ, in
numbers, in addresses or in values, the accounts do not add up: each chunk's hash is XORed into them as well.
"""

from __future__ import annotations

import pickle
import sys
from array import array
from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b
from struct import Struct as Layout
from typing import Any, Final

import msgspec

from stormlet.spark.engine.planning.numbering import Place

CHUNK: Final = 1000
"""The most values of a chunk."""
STATE_PIECE: Final = 64 << 20
"""Bytes of a row with state."""
FIRST: Final = -1
"""Stands for the producer of state, which comes before everything else."""
HEAVY: Final = 8 << 20
"""Bytes that are not gathered any longer, however few values they are."""

_numbers = Layout("<7q").pack


class Kind(IntEnum):
    """The content of a row."""

    CHUNK = 0
    """Tuples for one task."""
    REPORT = 1
    """The report of one partition at its end; for the driver."""
    MESSAGES = 2
    """Messages that the driver has read, for a spout task to emit."""
    STATE = 3
    """A piece of the state that the bolts of one partition leave to the next epoch of a stream."""
    LEDGER = 4
    """Entries of the ledger by root, for the driver: roots and words, with the number 1 if they were emitted, and -1 if
    they were settled."""
    MEMBERS = 5
    """The messages of what was merged, for the driver (:mod:`stormlet.spark.engine.partition.merging`)."""
    KEYED = 6
    """A blob of a key group of one task (:mod:`stormlet.spark.engine.partition.keyed.groups`)."""


STATES: Final = (Kind.STATE, Kind.KEYED)
"""Rows that bring a state back to its place."""


class Row(msgspec.Struct, frozen=True):
    """One row. Fields that its kind has no use for are empty."""

    kind: int
    stage: int
    partition: int
    target: int = 0
    """The id of the task that it is for; of a blob, its group."""
    producer: int = 0
    """The id of the task that has emitted it."""
    number: int = 0
    """Its number among the rows of its producer."""
    size: int = 0
    """The number of values; of a piece of state, that of all pieces; of a blob, the epoch that has written it."""
    roots: bytes = b""
    """The roots of all values, one after another."""
    counts: bytes = b""
    """The number of roots of each value; empty if each has one."""
    attempts: bytes = b""
    """The attempt of each value; empty if each is the first."""
    words: bytes = b""
    payload: bytes = b""

    @property
    def place(self) -> Place:
        """Its address."""
        return Place(self.stage, self.partition)

    @property
    def hash(self) -> int:
        """64 bits that depend on all of its content, its address included."""
        numbers = _numbers(
            self.kind, self.stage, self.partition, self.target, self.producer, self.number, self.size
        )
        hashed = blake2b(numbers, digest_size=8)
        for part in (self.roots, self.counts, self.attempts, self.words, self.payload):
            hashed.update(len(part).to_bytes(8, "little"))
            hashed.update(part)
        return int.from_bytes(hashed.digest(), "little")


class Content(msgspec.Struct, frozen=True):
    """The tuples of a chunk."""

    values: Sequence[Any]
    streams: Sequence[str]
    """The stream of each value; a single one if all have the same."""
    roots: Sequence[int]
    """The roots of all values, one after another."""
    counts: Sequence[int]
    """The number of roots of each value; empty if each has one."""
    attempts: Sequence[int]
    """The attempt of each value; empty if each is the first."""


def pack(content: Content) -> dict[str, Any]:
    """Return the fields of a row with this content, but for its words."""
    return {
        "size": len(content.values),
        "roots": packed(content.roots),
        "counts": packed(content.counts),
        "attempts": packed(content.attempts),
        "payload": pickle.dumps((content.values, content.streams), pickle.HIGHEST_PROTOCOL),
    }


def unpack(row: Row) -> Content:
    """Return the content of a chunk."""
    values, streams = pickle.loads(row.payload)
    return Content(values, streams, unpacked(row.roots), unpacked(row.counts), unpacked(row.attempts))


def state_rows(place: Place, state: bytes) -> Sequence[Row]:
    """Return the rows that bring a state back to its place."""
    pieces = [state[first : first + STATE_PIECE] for first in range(0, len(state), STATE_PIECE)]
    return [
        Row(
            Kind.STATE,
            place.stage,
            place.partition,
            producer=FIRST,
            number=number,
            size=len(pieces),
            payload=piece,
        )
        for number, piece in enumerate(pieces)
    ]


def packed(numbers: Sequence[int]) -> bytes:
    """Return unsigned 64-bit numbers as bytes."""
    return array("Q", numbers).tobytes()


def unpacked(numbers: bytes) -> list[int]:
    """Return the numbers again."""
    unpacked = array("Q")
    unpacked.frombytes(numbers)
    return unpacked.tolist()


def xor_of(numbers: bytes) -> int:
    """Return the XOR of packed numbers."""
    # As one large integer that is folded in half again and again: numbers one by one cost a hundred times as much.
    folded, width = int.from_bytes(numbers, sys.byteorder), len(numbers) // 8
    while width > 1:
        half = (width + 1) // 2
        folded = (folded >> 64 * half) ^ (folded & ((1 << 64 * half) - 1))
        width = half
    return folded
