"""Positions of sources, as they are kept with an epoch (law X8). Each kind of source has a form of its own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, cast
from zlib import crc32

import msgspec

from stormlet.errors import StateUnusable
from stormlet.model.description import SpoutSpec
from stormlet.model.logic import SourceKind
from stormlet.model.traits import spout_traits


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The position of a generator or an iterable: the number of values that are durable, and the last of them in short
    form, to see whether the source still gives the same."""

    count: int
    digest: int | None
    """None for a value that msgspec cannot encode."""

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        return msgspec.msgpack.encode(self)


class CutPosition(msgspec.Struct, frozen=True):
    """The position of a source that cuts epochs: what it calls the last one that is durable."""

    line: str
    number: int

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        return msgspec.msgpack.encode(self)


def check(spout: SpoutSpec, position: bytes) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for a position that another kind of source has left."""
    try:
        msgspec.msgpack.decode(position, type=_form_of(spout))
    except msgspec.ValidationError as error:
        raise StateUnusable(
            f"spout {spout.id!r} was another kind of source when its position was kept; give it the one that it had, "
            f"or have that forgotten (`stormlet state forget`), so that the new one begins at its start"
        ) from error


def _form_of(spout: SpoutSpec) -> object:
    match spout.kind:
        case SourceKind.FACTORY:
            return CutPosition if spout_traits(spout.source).cuts_epochs else list[tuple[Any, Any]]
        case SourceKind.ITERABLE | SourceKind.GENERATOR:
            return Position
        case _:  # the host knows by itself what it has emitted
            return None


def digest_of(value: object) -> int | None:
    """Return a short form of a value, equal for equal values in every process; None if there is none."""
    try:
        return crc32(msgspec.msgpack.encode(value, order="deterministic"))
    except Exception:
        # Of types and numbers that nobody can encode, too deep, or what the class itself raises.
        return None


def encoded(last: Mapping[Hashable, object]) -> bytes:
    """Return the last message ids of a ``Spout`` class by partition, as they are kept. Raises :class:`TypeError` for an
    id that cannot be kept."""
    return msgspec.msgpack.encode(list(last.items()))


def decoded(position: bytes, *, cut: bool = False) -> Mapping[Hashable, object]:
    """Return where a ``Spout`` class goes on: what :func:`encoded` was given, with tuples for lists in ids and
    partitions; or, if it cuts epochs, the line and number of the last one, for no partition."""
    if cut:
        last = msgspec.msgpack.decode(position, type=CutPosition)
        return {None: (last.line, last.number)}
    pairs = cast("list[list[object]]", msgspec.msgpack.decode(position))
    return {_hashable(partition): _hashable(last) for partition, last in pairs}


def _hashable(value: object) -> object:
    return tuple(map(_hashable, cast("list[object]", value))) if isinstance(value, list) else value
