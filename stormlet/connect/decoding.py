"""Values of messages: what ``as_=`` makes of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stormlet.connect.session import Delivery

Decode = Callable[[Delivery], Any]


class Received(msgspec.Struct, frozen=True):
    """A message as it came, for sources without ``as_=``."""

    body: bytes
    name: str = ""
    """Its name at the broker, such as ``events[2]@17``; empty if it has none."""
    key: str | bytes | None = None
    headers: Mapping[str, str | bytes] = msgspec.field(default_factory=dict[str, str | bytes])
    deliveries: int = 1
    """Times that it was delivered, as far as the broker counts."""
    published: float | None = None
    """Time of publication, in seconds since 1970."""


def decoder(as_: Any, encoding: str = "json") -> Decode:
    """Return a function that makes the value of a delivery.

    ``as_`` is None for :class:`Received`, ``bytes`` for the body, ``str`` for its text, else any type that msgspec
    decodes, from ``encoding`` ``"json"`` or ``"msgpack"``. The function raises :class:`msgspec.DecodeError` or
    :class:`UnicodeDecodeError`; this raises :class:`ValueError` for another encoding.
    """
    if as_ is None:
        return _as_it_came
    if as_ is bytes:
        return _body
    if as_ is str:
        return _text
    decode = _decode(as_, encoding)
    return lambda delivery: decode(delivery.body)


def _decode(as_: Any, encoding: str) -> Callable[[bytes], Any]:
    if encoding == "json":
        return msgspec.json.Decoder(as_).decode
    if encoding == "msgpack":
        return msgspec.msgpack.Decoder(as_).decode
    raise ValueError(f"encoding={encoding!r} is neither 'json' nor 'msgpack'")


def _as_it_came(delivery: Delivery) -> Received:
    name, headers, published = delivery.name, dict(delivery.headers), delivery.published
    return Received(delivery.body, name, delivery.key, headers, delivery.deliveries, published)


def _body(delivery: Delivery) -> bytes:
    return delivery.body


def _text(delivery: Delivery) -> str:
    return delivery.body.decode()


def encoded(value: object, encoding: str = "json") -> bytes:
    """Return the body for a value that a sink writes: bytes and text as they are, all else by msgspec."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return msgspec.json.encode(value) if encoding == "json" else msgspec.msgpack.encode(value)
