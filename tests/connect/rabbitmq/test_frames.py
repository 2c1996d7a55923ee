"""Frames whose metadata the client itself does not read."""

from __future__ import annotations

import asyncio
import struct
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from aiormq import AMQPConnectionError, InvalidFrameError
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.frame import FrameTypes, marshal, unmarshal
from pamqp.header import ContentHeader

from stormlet.connect.rabbitmq.frames import DEEPEST, ForgivingReceiver, read_frame
from tests.connect.rabbitmq.odd import DEEP, ODD, Properties, nested, table, text

CHANNEL = 3


def framed(value: FrameTypes) -> bytes:
    """A frame, as the broker sends it."""
    return marshal(value, CHANNEL)


def header(**encoded: bytes) -> bytes:
    """A content header with these properties, which are encoded already."""
    return framed(ContentHeader(0, 77, Properties(**encoded)))


def properties(frame: bytes) -> Basic.Properties:
    """What is read of a content header."""
    size, channel, found = read_frame(frame)
    assert isinstance(found, ContentHeader)
    assert (size, channel, found.body_size) == (len(frame), CHANNEL, 77)
    return found.properties


def headers(*entries: bytes) -> Any:
    """What is read of a table of headers."""
    return properties(header(headers=table(*entries))).headers


@pytest.mark.parametrize("odd", ODD)
def test_what_the_client_does_not_read_is_read(odd: str) -> None:
    """It raises, and in its hands the connection would end; all other properties are there."""
    name, raw = ODD[odd]
    frame = header(**{"app_id": text(b"shop"), name: raw})
    with pytest.raises(Exception, match=r".+"):
        unmarshal(frame)
    found = properties(frame)
    assert (found.delivery_mode, found.app_id) == (2, "shop")
    assert name != "headers" or (found.headers or {})["shop"] == "north"


def test_a_text_that_is_no_utf_8_keeps_its_bytes_apart() -> None:
    """Two ids are never made one."""
    found = [properties(header(message_id=text(raw))).message_id for raw in (b"caf\xe9", b"caf\xe8")]
    assert found == [r"caf\xe9", r"caf\xe8"]


def test_a_time_out_of_range_is_left_out() -> None:
    """As a header it is its number."""
    raw = struct.pack(">Q", 10**15)
    assert properties(header(timestamp=raw)).timestamp is None
    assert headers(text(b"at") + b"T" + raw) == {"at": 10**15}


def test_a_good_time_beside_odd_metadata_is_a_time() -> None:
    """So are numbers what they were."""
    at = datetime(2026, 11, 22, 10, tzinfo=UTC)
    seconds = struct.pack(">Q", int(at.timestamp()))
    found = properties(header(message_id=text(b"\xe9"), timestamp=seconds, priority=b"\x07"))
    assert (found.timestamp, found.priority) == (at, 7)
    assert headers(text(b"\xe9") + b"T" + seconds) == {r"\xe9": at}


def test_what_is_nested_too_deep_is_left_out() -> None:
    """As many tables are read as can be."""
    found, depth = properties(header(headers=nested(DEEP))).headers, 0
    while found:
        found, depth = found["t"], depth + 1
    assert depth == DEEPEST


def test_what_comes_behind_an_unknown_type_is_left_out() -> None:
    """Its length is not known; but that of the table is."""
    found = properties(header(headers=table(text(b"a") + b"t\x01", text(b"b") + b"?1"), app_id=text(b"shop")))
    assert (found.headers, found.app_id) == ({"a": True}, "shop")


def test_a_delivery_with_any_routing_key_is_read() -> None:
    """It has the publisher's key."""
    frame = framed(Basic.Deliver("consumer", 2**40, True, "lamps", "key")).replace(b"\x03key", b"\x03k\xe9y")
    with pytest.raises(Exception, match="utf-8"):
        unmarshal(frame)
    size, channel, found = read_frame(frame)
    assert isinstance(found, Basic.Deliver)
    assert (size, channel, dict(found)) == (
        len(frame),
        CHANNEL,
        {
            "consumer_tag": "consumer",
            "delivery_tag": 2**40,
            "redelivered": True,
            "exchange": "lamps",
            "routing_key": r"k\xe9y",
        },
    )


@pytest.mark.parametrize("seed", range(20))
def test_no_content_header_is_refused(seed: int) -> None:
    """Of any bytes: the size of the body, by which the message is read to its end, is always there."""
    random = Random(seed)
    for _, (name, raw) in ODD.items():
        frame = bytearray(header(**{name: raw, "app_id": text(b"shop")}))
        for place in random.sample(range(19, len(frame) - 1), 3):
            frame[place] = random.randrange(256)
        properties(bytes(frame))


@pytest.mark.parametrize("payload", [b"", b"\x00\x3c\x00\x00"])
def test_a_broken_frame_is_an_error(payload: bytes) -> None:
    """One that is too short, one of an unknown method, and one without its end."""
    broken = struct.pack(">BHI", 2, 1, len(payload)) + payload
    unknown = struct.pack(">BHII", 1, 1, 4, 2**31)
    for frame in (broken + b"\xce", unknown + b"\xce", header(timestamp=b"\xff" * 8)[:-1] + b"!"):
        with pytest.raises(InvalidFrameError):
            read_frame(frame)


@pytest.mark.asyncio
async def test_frames_are_read_one_after_another() -> None:
    """To the end of the connection, which is an error within a frame."""
    reader = asyncio.StreamReader()
    receiver = ForgivingReceiver(reader)
    body = framed(ContentBody(b"lamp"))
    reader.feed_data(header(timestamp=b"\xff" * 8) + body + body[:-3])
    found = [(await receiver.get_frame())[2] for _ in range(2)]
    assert [type(each) for each in found] == [ContentHeader, ContentBody]
    reader.feed_eof()
    with pytest.raises(AMQPConnectionError, match="has ended"):
        await receiver.get_frame()
    with pytest.raises(StopAsyncIteration):
        await receiver.get_frame()
