"""Entries of a stream as deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from stormlet.connect.redis.client import text
from stormlet.connect.session import Delivery

BODY = "body"
"""The field of an entry that has the body, unless another is named."""
KEY = "key"
"""The field of an entry that has the key."""
LONG_AGO = 1_000_000_000_000
"""Ids below are no times of the server's clock, in ms since 1970, but somebody's own numbers."""


def delivery(stream: str, id: bytes, fields: Sequence[bytes], body: str, deliveries: int = 1) -> Delivery:
    """Return the delivery of an entry. Its receipt is the id, which is valid for as long as the entry is pending."""
    content, more = _content(fields, body)
    written = id.decode()
    return Delivery(
        body=content,
        receipt=written,
        name=f"{stream}@{written}",
        key=more.get(KEY),
        headers=more,
        deliveries=deliveries,
        published=_time_of(written),
    )


def _content(fields: Sequence[bytes], body: str) -> tuple[bytes, dict[str, bytes]]:
    """Return the body and the other fields; without a body, a JSON object of all fields as texts."""
    if len(fields) == 2 and fields[0] == body.encode():  # the usual entry
        return fields[1], {}
    found = {text(name): value for name, value in zip(fields[::2], fields[1::2], strict=True)}
    content = found.pop(body, None)
    if content is None:
        content = msgspec.json.encode({name: text(value) for name, value in found.items()})
    return content, found


def _time_of(id: str) -> float | None:
    milliseconds = int(id.partition("-")[0])
    return None if milliseconds < LONG_AGO else milliseconds / 1000


def id_numbers(id: str | bytes) -> tuple[int, int]:
    """Return the two numbers of an id, by which ids are in order."""
    first, _, second = text(id).partition("-")
    return int(first), int(second or 0)


Entry: TypeAlias = tuple[bytes, Sequence[bytes] | None]
"""The id of an entry with its names and values, one after another; None: it was deleted."""


def entries_of(reply: Any) -> Sequence[Entry]:
    """Return the entries of the one stream that was read."""
    return reply[0][1] if reply else ()


def sorted_out(entries: Sequence[Entry]) -> tuple[list[tuple[bytes, Sequence[bytes]]], list[bytes]]:
    """Return the entries that are there, and the ids of those that were deleted."""
    there = [(id, fields) for id, fields in entries if fields is not None]
    return there, [id for id, fields in entries if fields is None]
