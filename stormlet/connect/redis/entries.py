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
    found = {text(name): value for name, value in zip(fields[::2], fields[1::2], strict=True)}
    id_text = id.decode()
    content = found.pop(body, None)
    return Delivery(
        body=_all_of(found) if content is None else content,
        receipt=id_text,
        name=f"{stream}@{id_text}",
        key=found.get(KEY),
        headers=found,
        deliveries=deliveries,
        published=_time_of(id_text),
    )


def _all_of(fields: dict[str, bytes]) -> bytes:
    """Return the fields of an entry that has no body as a JSON object of texts."""
    return msgspec.json.encode({name: text(value) for name, value in fields.items()})


def _time_of(id: str) -> float | None:
    milliseconds = id_numbers(id)[0]
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
