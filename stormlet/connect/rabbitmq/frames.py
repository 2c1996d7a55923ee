"""Frames of AMQP, read whatever metadata a publisher has given.

The broker checks neither the texts nor the times of a message. pamqp raises for a text that is no UTF-8, a time that is
out of range and tables that are nested too deep, and aiormq then gives up the connection: the broker delivers the
message again to the next one, which ends as well. Here such a frame is read once more, field by field.

aiormq has no place for a reader of one's own. But it hands its reader to ``_rpc`` while it connects, and from then on
that one reads as is written here. Other connections of the process are as they were.

The reader also sees that the broker blocks who publishes, which aiormq only logs.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, cast

from aiormq import AMQPConnectionError, Connection, InvalidFrameError
from aiormq.connection import FrameReceiver, ReceivedFrame
from pamqp import decode
from pamqp.base import BasicProperties, Frame
from pamqp.commands import INDEX_MAPPING
from pamqp.commands import Connection as Blocking
from pamqp.common import FieldArray, FieldTable, FieldValue
from pamqp.constants import FRAME_END, FRAME_HEADER, FRAME_HEADER_SIZE, FRAME_METHOD
from pamqp.frame import FrameTypes, frame_parts, unmarshal
from pamqp.header import ContentHeader

DEEPEST: Final = 32
"""Tables and arrays within each other that are read where pamqp has failed."""
MALFORMED: Final = (ValueError, LookupError, ArithmeticError, OSError, struct.error)
"""What is raised for a field that says nothing; a time out of range is one of the last three, by its size."""
CONTENT: Final = struct.Struct(">HHQH")
"""What every content header begins with: class, weight, size of the body, flags of the properties that follow."""


class ForgivingConnection(Connection):
    """A connection that no metadata of a message ends."""

    blocked: Callable[[str | None], None] | None = None
    """Called with the reason when the broker begins to read nothing of this connection, as it is short of memory or
    disk, and with None when it reads on. It does that to connections that publish."""

    async def _rpc(self, *args: Any, **kwargs: Any) -> FrameTypes | None:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride] - called by the instance
        for each in (*args, *kwargs.values()):
            if type(each) is FrameReceiver:
                each.__class__ = ForgivingReceiver
                cast("ForgivingReceiver", each).connection = self
        return await Connection._rpc(*args, **kwargs)


class ForgivingReceiver(FrameReceiver):
    """The client's reader of frames. What it cannot read it has forgotten when it raises: so all is read here."""

    connection: ForgivingConnection

    async def get_frame(self) -> ReceivedFrame:
        """Return the next frame, after its size and channel."""
        reader = self.reader
        if reader.at_eof():
            raise StopAsyncIteration
        try:
            start = await reader.readexactly(FRAME_HEADER_SIZE)
            rest = await reader.readexactly((frame_parts(start)[2] or 0) + 1)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise AMQPConnectionError(f"the connection has ended: {error}") from error
        received = read_frame(start + rest)
        if not received[1] and (report := self.connection.blocked) is not None:
            match received[2]:
                case Blocking.Blocked(reason=reason):
                    report(reason)
                case Blocking.Unblocked():
                    report(None)
                case _:
                    pass
        return received


def read_frame(frame: bytes) -> ReceivedFrame:
    """Return what is in a frame, after its size and channel. Raises :class:`aiormq.InvalidFrameError` if it is none."""
    try:
        return unmarshal(frame)
    except Exception as error:  # of any kind: RecursionError and OverflowError are among them
        try:
            return len(frame), frame_parts(frame)[1], _read_again(frame)
        except MALFORMED:
            raise InvalidFrameError(str(error)) from error


def _read_again(frame: bytes) -> FrameTypes:
    payload = frame[FRAME_HEADER_SIZE:-1]
    if frame[-1] == FRAME_END and frame[0] == FRAME_HEADER:
        return _content_header(payload)
    if frame[-1] == FRAME_END and frame[0] == FRAME_METHOD:
        return _method(payload)
    raise ValueError("a broken frame, or one that has nothing of a publisher")


def _method(payload: bytes) -> Frame:
    # One that has a publisher's routing key: a delivery, or what has come back.
    method: Frame = INDEX_MAPPING[int.from_bytes(payload[:4])]()
    _fill(method, method.attributes(), payload[4:])
    return method


def _content_header(payload: bytes) -> ContentHeader:
    _, weight, size, flags = CONTENT.unpack_from(payload)
    header = ContentHeader(weight, size)
    given = [name for name in header.properties.attributes() if flags & header.properties.flags[name]]
    with suppress(*MALFORMED):  # what comes behind it is left out
        _fill(header.properties, given, payload[CONTENT.size :])
    return header


def _fill(target: Frame | BasicProperties, names: Iterable[str], data: bytes) -> None:
    for name in names:
        used, value = _field(data, target.amqp_type(name))
        setattr(target, name, value)
        data = data[used:]


def _field(data: bytes, kind: str) -> tuple[int, FieldValue]:
    match kind:
        case "shortstr":
            end = 1 + data[0]
            return end, data[1:end].decode("utf-8", "backslashreplace")
        case "timestamp":
            return 8, _time(data)
        case "table":
            return _table(data, 1)
        case "bit":  # alone in its byte where a method has a routing key
            return 1, bool(data[0])
        case _:
            return decode.by_type(data, kind)


def _time(data: bytes) -> datetime | None:
    try:
        return decode.timestamp(data)[1]
    except MALFORMED:
        return None


def _table(data: bytes, depth: int) -> tuple[int, FieldTable]:
    end, place, found = _end(data), 4, FieldTable()
    with suppress(*MALFORMED):
        while place < end and depth <= DEEPEST:
            used, name = _field(data[place:end], "shortstr")
            place += used
            used, found[str(name)] = _value(data[place:end], depth)
            place += used
    return end, found


def _array(data: bytes, depth: int) -> tuple[int, FieldArray]:
    end, place, found = _end(data), 4, FieldArray()
    with suppress(*MALFORMED):
        while place < end and depth <= DEEPEST:
            used, value = _value(data[place:end], depth)
            place += used
            found.append(value)
    return end, found


def _end(data: bytes) -> int:
    return min(4 + int.from_bytes(data[:4]), len(data))


def _value(data: bytes, depth: int) -> tuple[int, FieldValue]:
    used, value = _value_of(data[:1], data[1:], depth)
    return 1 + used, value


def _value_of(kind: bytes, data: bytes, depth: int) -> tuple[int, FieldValue]:
    match kind:
        case b"F":
            return _table(data, depth + 1)
        case b"A":
            return _array(data, depth + 1)
        case b"T":
            return 8, _time(data) or int.from_bytes(data[:8])  # the number, if it is out of range
        case _:
            return decode.TABLE_MAPPING[kind](data)
