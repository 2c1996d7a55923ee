"""The entries of a state as basic values, without the program that has declared it; and their form in JSON lines, from
which a program makes entries again.

A line is ``{"state": "count.total", "key": "moon", "value": 7}``: one for each entry. The key of an entry of a map or a
list is the pair of its key and its own key. Where the state has a ``ttl``, ``written`` is the time of the entry.

Numbers that JSON does not know are the texts ``nan``, ``inf`` and ``-inf``; bytes are in base64; times are in ISO 8601.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import msgspec

from stormlet.core.state.blobs import flattened
from stormlet.core.state.codecs import Keys, Values, reader
from stormlet.core.state.commits import Shape, StateId
from stormlet.core.state.tables import Declared
from stormlet.errors import StateUnusable

WITH_TTL: Final = " with ttl"
"""The end of the kind of a state whose entries have their times."""

KEY_TYPES: Final[Mapping[str, type]] = {
    each.__name__: each
    for each in (bool, int, float, str, bytes, Decimal, UUID, datetime, date, time, timedelta)
}
"""Types of keys that are known without the program: equal keys are one key, whatever their bytes are."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a state, in basic values."""

    state: str
    key: Any
    value: Any
    written: float | None = None

    @property
    def size(self) -> int:
        """Bytes of its key and value, as they are kept; with the time, if it has one."""
        kept = self.value if self.written is None else (self.written, self.value)
        return len(msgspec.msgpack.encode(self.key)) + len(msgspec.msgpack.encode(kept))


def entries_of(id: StateId, shape: Shape | None, blobs: Iterable[bytes]) -> Iterator[Entry]:
    """The newest entries of a state, oldest first. Raises :class:`~stormlet.errors.StateUnusable` for what is no log of
    entries."""
    found: dict[Any, Any] = {}
    for entries in _decoded(id, shape, blobs):
        found.update(entries)
    return _entries(id, shape, found)


def each_entry(id: StateId, shape: Shape | None, blobs: Iterable[bytes]) -> Iterator[Entry]:
    """The entries of a state of which each is in one blob alone: one after the other, as there may be more than there
    is memory for. Raises :class:`~stormlet.errors.StateUnusable` likewise."""
    for entries in _decoded(id, shape, blobs):
        yield from _entries(id, shape, entries)


def _decoded(id: StateId, shape: Shape | None, blobs: Iterable[bytes]) -> Iterator[Mapping[Any, Any]]:
    read = _reader(shape)
    for blob in blobs:
        try:
            yield read(blob)
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise StateUnusable(
                f"state {str(id)!r} cannot be read: {error}; put a saved copy in its place"
            ) from error


def _entries(id: StateId, shape: Shape | None, found: Mapping[Any, Any]) -> Iterator[Entry]:
    name, has_ttl = str(id), shape is not None and shape.kind.endswith(WITH_TTL)
    for key, value in found.items():
        if value is None:
            continue
        if has_ttl:
            written, kept = value
            yield Entry(name, key, kept, written)
        else:
            yield Entry(name, key, value)


def _reader(shape: Shape | None) -> Callable[[bytes], Mapping[Any, Any]]:
    key = KEY_TYPES.get(shape.key) if shape is not None and shape.kind.startswith("value") else None
    decode = reader(Any if key is None else key, Any)

    def read(blob: bytes) -> Mapping[Any, Any]:
        try:
            return decode(blob)
        except msgspec.DecodeError:
            return _with_records_as_keys(blob)

    return read


def _with_records_as_keys(blob: bytes) -> Mapping[Any, Any]:
    # Records as keys are maps, which Python cannot have as keys: the map is read as a list of keys and values.
    flat = msgspec.msgpack.decode(flattened(blob), type=list[Any])
    return dict(zip(map(_hashable, flat[::2]), flat[1::2], strict=True))


class RecordKey(tuple[tuple[Any, Any], ...]):
    """The fields of a record that is a key, by their names."""


def _hashable(key: Any) -> Any:
    if isinstance(key, dict):
        fields = cast("dict[object, object]", key)
        return RecordKey((name, _hashable(value)) for name, value in fields.items())
    if isinstance(key, list):
        return tuple(map(_hashable, cast("list[object]", key)))
    return key


def plain(value: Any) -> Any:
    """The value as JSON has it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, RecordKey):
        return {name: plain(each) for name, each in value}
    if isinstance(value, list | tuple):
        return [plain(each) for each in cast("Sequence[object]", value)]
    if isinstance(value, dict):
        return _plain_map(cast("dict[object, object]", value))
    return msgspec.to_builtins(value)


def _plain_map(value: Mapping[Any, Any]) -> Any:
    """An object, or pairs where its keys are no texts or numbers."""
    pairs = [(plain(key), plain(each)) for key, each in value.items()]
    if all(isinstance(key, str | int | float) and not isinstance(key, bool) for key, _ in pairs):
        return {key if isinstance(key, str) else as_json(key): each for key, each in pairs}
    return [list(pair) for pair in pairs]


def as_json(value: Any) -> str:
    """A plain value as JSON, in characters that no terminal takes for a command."""
    text = msgspec.json.encode(value).decode()
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    # JSON has such characters within texts alone.
    if character.isprintable():
        return character
    code = character.encode("utf-16-be").hex()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))


def line_of(entry: Entry) -> str:
    """The entry as one line of JSON, without the newline at its end."""
    written = {} if entry.written is None else {"written": entry.written}
    return as_json({"state": entry.state, "key": plain(entry.key), "value": plain(entry.value), **written})


def by_key(entries: Iterable[Entry], kind: str) -> Iterator[tuple[Any, Any]]:
    """The keys of a state with all that each has, in plain values: of a map an object, of a list its items."""
    if kind.startswith("value"):
        for each in entries:
            yield plain(each.key), plain(each.value)
        return
    found: dict[Any, dict[Any, Any]] = {}
    for each in entries:
        key, inner = each.key
        found.setdefault(key, {})[inner] = each.value
    for key, parts in found.items():
        if kind.startswith("list"):
            yield plain(key), [plain(parts[index]) for index in sorted(parts)]
        else:
            yield plain(key), _plain_map(parts)


Read: TypeAlias = Callable[[bytes, bytes, float | None], tuple[Any, Any]]


def decoder_of(declared: Declared) -> Read:
    """A reader of an entry's key, value and time, as they stand in a line, which returns them as the store has them; it
    raises :class:`ValueError` or :class:`TypeError` for what does not fit the declared types."""
    read_key, read_value = _json_reader(declared.entry), _json_reader(declared.value)
    keys, values = Keys(declared.key), Values(declared.value)
    inner = Keys(declared.inner)

    def read(key: bytes, value: bytes, written: float | None) -> tuple[Any, Any]:
        found = _tuples(read_key(key))
        fit = keys.fit(found) if declared.kind == "value" else (keys.fit(found[0]), inner.fit(found[1]))
        if value.strip() == b"null":
            raise ValueError("an entry cannot be null, which stands for none; leave the line out")
        kept = values.fit(read_value(value))
        if declared.ttl is None:
            if written is not None:
                raise ValueError("the state has no ttl, and so its entries have no time; leave out written")
            return fit, kept
        if written is None:
            raise ValueError(
                "the state has a ttl; say by written when the entry was written, in seconds since 1970"
            )
        return fit, (written, kept)

    return read


def _json_reader(kind: Any) -> Callable[[bytes], Any]:
    strict = msgspec.json.Decoder(cast("type[Any]", kind))
    # Texts for numbers that JSON does not know.
    lax = msgspec.json.Decoder(cast("type[Any]", kind), strict=False)

    def read(text: bytes) -> Any:
        try:
            return strict.decode(text)
        except msgspec.ValidationError as error:
            if b"nan" in text or b"inf" in text:
                return lax.decode(text)
            raise error

    return read


def _tuples(key: Any) -> Any:
    # What is read without a declared type, also as the key in the pair of a map or a list.
    if isinstance(key, list) or type(key) is tuple:
        return tuple(map(_tuples, cast("Sequence[object]", key)))
    return key
