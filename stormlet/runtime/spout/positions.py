"""Positions of sources, as they are kept with an epoch (law X8)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import cast
from zlib import crc32

import msgspec


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The position of a generator or an iterable: the number of values that are durable, and the last of them in short
    form, to see whether the source still gives the same."""

    count: int
    digest: int | None
    """None for a value that msgspec cannot encode."""

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        return msgspec.msgpack.encode(self)


def digest_of(value: object) -> int | None:
    """Return a short form of a value, equal for equal values in every process; None if there is none."""
    try:
        return crc32(msgspec.msgpack.encode(value, order="deterministic"))
    except (TypeError, ValueError, OverflowError):  # of types and numbers that nobody can encode
        return None


def encoded(last: Mapping[Hashable, object]) -> bytes:
    """Return the last message ids of a ``Spout`` class by partition, as they are kept. Raises :class:`TypeError` for an
    id that cannot be kept."""
    return msgspec.msgpack.encode(list(last.items()))


def decoded(position: bytes) -> Mapping[Hashable, object]:
    """Return what :func:`encoded` was given; lists in ids and partitions have become tuples."""
    pairs = cast("list[list[object]]", msgspec.msgpack.decode(position))
    return {_hashable(partition): _hashable(last) for partition, last in pairs}


def _hashable(value: object) -> object:
    return tuple(map(_hashable, cast("list[object]", value))) if isinstance(value, list) else value
