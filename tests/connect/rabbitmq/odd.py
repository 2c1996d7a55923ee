"""Metadata that other publishers give, and that the client itself does not read."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pamqp import encode
from pamqp.commands import Basic

MICROSECONDS: Final = struct.pack(">Q", 1_764_000_000_000_000)
"""A time that AMQP would have in seconds."""
DEEP: Final = 700
"""Tables within each other that are too many for the client."""


def text(raw: bytes) -> bytes:
    """A short string of AMQP, of any bytes."""
    return bytes([len(raw)]) + raw


def table(*entries: bytes) -> bytes:
    """A table of AMQP."""
    return struct.pack(">I", sum(map(len, entries))) + b"".join(entries)


def array(*values: bytes) -> bytes:
    """An array of AMQP."""
    return table(*values)


def nested(depth: int) -> bytes:
    """Tables within each other."""
    found = table()
    for _ in range(depth):
        found = table(text(b"t") + b"F" + found)
    return found


PLAIN: Final = text(b"shop") + b"S" + struct.pack(">I", 5) + b"north"
"""A header that all can read."""
ODD: Final[Mapping[str, tuple[str, bytes]]] = {
    "a time in microseconds": ("timestamp", MICROSECONDS),
    "a time beyond all clocks": ("timestamp", b"\xff" * 8),
    "an id in Latin-1": ("message_id", text(b"caf\xe9")),
    "a type in Latin-1": ("content_type", text(b"text/\xe9")),
    "a header's name in Latin-1": ("headers", table(text(b"\xe9") + b"t\x01", PLAIN)),
    "a header with a time in microseconds": ("headers", table(text(b"at") + b"T" + MICROSECONDS, PLAIN)),
    "a list with a time in microseconds": (
        "headers",
        table(text(b"at") + b"A" + array(b"t\x01", b"T" + MICROSECONDS), PLAIN),
    ),
    "a table with a name in Latin-1": (
        "headers",
        table(text(b"in") + b"F" + table(text(b"\xe9") + b"t\x01"), PLAIN),
    ),
    "tables within each other": ("headers", table(text(b"deep") + b"F" + nested(DEEP), PLAIN)),
}
"""A property, and how it is encoded."""
KEY: Final = "a routing key in Latin-1"


class Properties(Basic.Properties):
    """Properties of which some are encoded already."""

    def __init__(self, **encoded: bytes) -> None:
        plain: dict[str, Any] = {"headers": {"a": "b"}, "timestamp": datetime.now(UTC)}
        super().__init__(**{name: plain.get(name, "x") for name in encoded}, delivery_mode=2)
        self.encoded = encoded

    def encode_property(self, name: str, value: Any) -> bytes:
        return self.encoded.get(name) or encode.by_type(value, self.amqp_type(name))


class Latin1(str):
    """A text that is encoded in Latin-1."""

    def encode(self, *_: object) -> bytes:  # type: ignore[override]
        return super().encode("latin-1")
