"""Blobs: msgpack maps from the keys of entries to their values, as the log of a state has them.

Where a store finds an entry by its key, it does by the key's bytes (:func:`bytes_of_key`). Equal keys are one key (law
K1), so equal keys have the same bytes there: ``1``, ``1.0`` and ``True`` those of ``1``. The key as it was given stands
in the blob. Bytes of a pair begin with those of its first item, so that all entries of one map stand together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from stormlet.core.state.codecs import LEAST_INT, MOST_INT, encoded

MOST_BYTES: Final = 1 << 20
"""Bytes of a blob, unless one value has more: a store reads and writes it as a whole."""
MOST_ENTRIES: Final = 100_000
"""Entries of a blob."""
PAIR: Final = b"\x92"
"""The first byte of a pair."""

_raw = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.msgpack.Encoder().encode


def cut_into_blobs(entries: Mapping[Any, Any]) -> Iterator[bytes]:
    """Encode entries, as many to a blob as it should have."""
    if len(entries) > MOST_ENTRIES:
        for part in _cut(entries, MOST_ENTRIES):
            yield from cut_into_blobs(part)
    elif entries:
        blob = encoded(entries)
        if len(blob) <= MOST_BYTES or len(entries) == 1:
            yield blob
        else:
            for part in _cut(entries, max(1, len(entries) * MOST_BYTES // len(blob))):
                yield from cut_into_blobs(part)


def _cut(entries: Mapping[Any, Any], size: int) -> Iterator[Mapping[Any, Any]]:
    left = iter(entries.items())
    while piece := dict(islice(left, size)):
        yield piece


def bytes_of_entries(blob: bytes) -> int:
    """Return the bytes of the keys and values of a blob, without those that say how many entries it has: the size of
    entries does not depend on the blobs that they are in."""
    return len(blob) - _head(blob, 0x80, 0xDE)[1]


def pairs_in(blob: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over the entries of a blob, keys and values in bytes; raises :class:`ValueError` for what is no map."""
    flat = _raw(flattened(blob))
    return zip(map(bytes, flat[::2]), map(bytes, flat[1::2]), strict=True)


def flattened(blob: bytes) -> bytes:
    """Return a map as a list of keys and values, as keys may be what Python takes for none; raise :class:`ValueError`
    for what is no map."""
    size, start = _head(blob, 0x80, 0xDE)
    return b"\xdd" + (2 * size).to_bytes(4, "big") + blob[start:]


def _head(raw: bytes, fixed: int, long: int) -> tuple[int, int]:
    """Return the number of items of an array or map, and the place of the first one."""
    first = raw[0] if raw else 0
    if fixed <= first < fixed + 16:
        return first - fixed, 1
    if first == long:
        return int.from_bytes(raw[1:3], "big"), 3
    if first == long + 1:
        return int.from_bytes(raw[1:5], "big"), 5
    raise ValueError("it is no map")


def bytes_of_key(key: Any) -> bytes:
    """Return the bytes by which a store finds a key; equal keys have the same."""
    return canonical(_encode(key))


def canonical(raw: bytes) -> bytes:
    """Return the bytes that all keys have which are equal to this one."""
    first = raw[0]
    if first in NUMBERS:
        return _number(raw, first)
    if 0x90 <= first < 0xA0 or first in (0xDC, 0xDD):
        return _items(raw, _raw(raw), _head(raw, 0x90, 0xDC)[1])
    if 0x80 <= first < 0x90 or first in (0xDE, 0xDF):
        return _items(raw, _raw(flattened(raw)), _head(raw, 0x80, 0xDE)[1])
    return raw


NUMBERS: Final = (0xC2, 0xC3, 0xCA, 0xCB)
"""First bytes of those that may be equal to an int: of bools and floats."""


def _number(raw: bytes, first: int) -> bytes:
    if first < 0xCA:
        return b"\x01" if first == 0xC3 else b"\x00"
    number: float = struct.unpack(">d" if first == 0xCB else ">f", raw[1:])[0]
    is_int = number.is_integer() and LEAST_INT <= number <= MOST_INT
    return _encode(int(number)) if is_int else raw


def _items(raw: bytes, items: Sequence[msgspec.Raw], start: int) -> bytes:
    return raw[:start] + b"".join(canonical(bytes(each)) for each in items)
