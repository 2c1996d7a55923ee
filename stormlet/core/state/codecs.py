"""The declared types of keyed state: the words for them, the check that they can be kept, and the bytes of their values
(law K1, K5).

A value has a *kept* form, which is what a table holds once the value is committed. One that is immutable by its type is
kept as it is. Any other is kept as its bytes: whoever reads it gets an object of its own, which is the cheapest copy
(a record of two fields is decoded in 0.1 µs; ``deepcopy`` takes 3 µs), and the garbage collector never sees the state.

A key is kept with its type. Equal keys are one key, so a key that is equal to a value of the declared type becomes that
value: ``True`` is kept as ``1`` where keys are ints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isnan
from types import NoneType, UnionType
from typing import Any, Final, Literal, Optional, Union, cast, get_args, get_origin
from uuid import UUID

import msgspec
from msgspec import inspect

from stormlet.core.records import bare, class_below, field_names, is_subclass, known_annotations
from stormlet.core.shortened import shortened

LEAST_INT: Final = -(2**63)
MOST_INT: Final = 2**64 - 1
"""The ints that msgpack can hold."""
NIL: Final = b"\xc0"

IMMUTABLE: Final = (
    NoneType, bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta, UUID, Enum
)  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def words_of(kind: object) -> str:
    """Return a type in words, as they stand in the store: without the modules, so that a class may move."""
    kind = bare(kind)
    if kind in (None, NoneType):
        return "None"
    if kind is Ellipsis:
        return "..."
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " | ".join(map(words_of, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    name: str = getattr(origin or kind, "__qualname__", "") or str(kind).removeprefix("typing.")
    return f"{name}[{', '.join(map(words_of, arguments))}]" if arguments else name


def single_class(kind: object) -> type | None:
    """Return the class that all values of a type are instances of; None for a union, and where there is none."""
    found = class_below(kind)
    return None if found is UnionType else found


def is_immutable(kind: object) -> bool:
    """Return True if no value of this type can change."""
    return _is_immutable(kind, [])


def _is_immutable(kind: object, above: list[type]) -> bool:
    kind = bare(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return True
    if origin in (Union, UnionType, tuple, frozenset):
        return all(_is_immutable(each, above) for each in arguments if each is not Ellipsis)
    found = cast("type[object] | None", class_below(kind))
    if found is None:
        return False
    return found in above or issubclass(found, IMMUTABLE) or _is_frozen(found, [*above, found])


def _is_frozen(record: type, above: list[type]) -> bool:
    """Return True for a record class whose fields cannot be set, and are of immutable types."""
    names, hints = field_names(record), known_annotations(record)
    frozen = is_subclass(record, tuple) or _says_frozen(record)
    return (
        frozen
        and names is not None
        and all(name in hints and _is_immutable(hints[name], above) for name in names)
    )


def _says_frozen(record: type) -> bool:
    if is_subclass(record, msgspec.Struct):
        return cast("type[msgspec.Struct]", record).__struct_config__.frozen
    parameters = getattr(record, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def unfit(kind: object) -> str | None:
    """Return the reason why values of this type cannot be kept, with the way out; None if they can."""
    if not isinstance(kind, type) and get_origin(kind) is None and bare(kind) is kind:
        return f"{shortened(kind)} is no type; pass a class, such as {type(kind).__name__}"
    try:
        info = inspect.type_info(kind)
    except (TypeError, NameError) as error:
        return f"{words_of(kind)} cannot be kept: {error}"
    odd = first_part(info, _ODD)
    if odd is None:
        return None
    if isinstance(odd, inspect.AnyType):
        return f"{words_of(kind)} does not say of what types its parts are; name them, as in dict[str, int]"
    return (
        f"{words_of(kind)} cannot be kept, because of {words_of(getattr(odd, 'cls', odd))}; "
        f"keep a record of basic types (msgspec.Struct, dataclass, NamedTuple) and make the object from it"
    )


_ODD: Final = (inspect.AnyType, inspect.CustomType, inspect.RawType, inspect.ExtType, inspect.MemoryViewType)
"""Types of which a part would not come back as it was."""


def first_part(
    info: object,
    kinds: tuple[type, ...],
    seen: list[object] | None = None,
    leave_out: Callable[[object], bool] | None = None,
) -> object:
    """Return the first of these kinds of types, as :mod:`msgspec.inspect` has them, within a type; None if it has
    none. ``leave_out`` says which ones do not count, only what is within them."""
    seen = [] if seen is None else seen
    if isinstance(info, kinds) and (leave_out is None or not leave_out(info)):
        return info
    if any(info is each for each in seen):
        return None
    seen.append(info)
    for part in _parts(info):
        found = first_part(part, kinds, seen, leave_out)
        if found is not None:
            return found
    return None


def _parts(info: Any) -> list[object]:
    """Return the types inside a type: of its items, or of its fields."""
    found: list[object] = []
    for name in info.__struct_fields__:
        part: object = getattr(info, name)
        found += cast("tuple[object, ...]", part) if isinstance(part, tuple) else [part]
    return [each for each in found if isinstance(each, inspect.Type | inspect.Field)]


class Keys:
    """The keys of one declared type; without one, of basic types and tuples of these."""

    def __init__(self, kind: Any = Any) -> None:
        self.kind = kind
        self.words = "any basic type" if kind is Any else words_of(kind)
        self._read = reader(kind, None)
        self._ints = kind is int or kind is Any
        self._texts = kind is str or kind is Any

    def fit(self, key: Any) -> Any:
        """Return the key as it is kept, which is equal to it; raise :class:`TypeError` if it cannot be kept."""
        if type(key) is str and self._texts and key.isascii():
            return key
        if type(key) is int and self._ints and LEAST_INT <= key <= MOST_INT:
            return key
        for each in self._candidates(key):
            try:
                (kept,) = self._read(_encode({each: None}))
            except (TypeError, ValueError, OverflowError):
                continue
            if kept == key:
                return kept
        raise TypeError(self._refusal(key))

    def _candidates(self, key: Any) -> list[Any]:
        if isinstance(key, bool | float | Decimal) and not _is_nan(key):
            number = cast("Any", key)
            if abs(number) <= MOST_INT and number == int(number):
                return [key, int(number)]
        return [key]

    def _refusal(self, key: object) -> str:
        if _is_nan(key):
            return (
                f"the key {shortened(key)} is equal to no key, not even to itself, so that its state would never be "
                f"found again; group by a function of the value that returns another key for it, such as None"
            )
        if isinstance(key, str) and has_lone_surrogates(key):
            return (
                f"the key {shortened(key)} is no text that can be kept: it has halves of characters (lone surrogates); "
                f"group by a function of the value that replaces them, or by bytes"
            )
        way_out = (
            "without a declared type, keys are None, bool, int, float, str, bytes and tuples of these; declare another "
            "one as the first type argument, as in KeyedBolt[Day, Sale, Total]"
            if self.kind is Any
            else "group by a key of that type, or declare another one as the first type argument of KeyedBolt"
        )
        return f"the key {shortened(key)} does not come back from the store as {self.words}; {way_out}"


def _is_nan(key: object) -> bool:
    return key.is_nan() if isinstance(key, Decimal) else isinstance(key, float) and isnan(key)


def has_lone_surrogates(text: str) -> bool:
    """Return True for a text with halves of characters, which UTF-8 does not have."""
    return any("\ud800" <= each <= "\udfff" for each in text)


class Values:
    """The values of one declared type.

    ``upgrade`` makes a value from one that does not decode as that type, out of basic types (law K5).
    """

    def __init__(self, kind: object, upgrade: Callable[[Any], Any] | None = None) -> None:
        self.kind: Any = kind
        self.words = words_of(kind)
        self.immutable = is_immutable(kind)
        self.upgrade = upgrade
        self._read: Callable[[Any], Any] = msgspec.msgpack.Decoder(cast("type[Any]", kind)).decode
        self._class = single_class(kind)
        self._whole = any(kind is each for each in (bool, float, bytes))
        self._ints = kind is int
        self._texts = kind is str

    def fits(self, value: Any) -> bool:
        """Return True if a value is seen at once to come back from its bytes as it is."""
        if type(value) is not self.kind:
            return False
        if self._ints:
            return bool(LEAST_INT <= value <= MOST_INT)
        return self._whole or (self._texts and value.isascii())

    def fit(self, value: Any) -> Any:
        """Return the value as a table takes it, equal to what is given; raise :class:`TypeError` if it does not fit.

        One that is immutable by its type is proved to come back from its bytes. Any other may change until the epoch
        ends; it is proved then, by :meth:`keep`.
        """
        if not self.immutable:
            if self._class is not None and not isinstance(value, self._class):
                raise TypeError(self._refusal(value))
            return value
        if self.fits(value):
            return value
        return self._proved(int(value) if self.kind is int and type(value) is bool else value)

    def keep(self, value: Any) -> Any:
        """Return the kept form of a value that fitted; raise :class:`TypeError` if it fits no more."""
        if self.immutable:
            return value
        try:
            kept = _encode(value)
            self._read(kept)
        except Exception as error:  # too deep, a field that is unset, or what the class itself raises
            raise TypeError(self._refusal(value, error)) from error
        return kept

    def open(self, kept: Any) -> Any:
        """Return the value of a kept form; an object of its own, if it can change."""
        return kept if self.immutable else self._read(kept)

    def read(self, raw: bytes) -> Any:
        """Return the kept form of what a store has, upgraded if it is of another type; raise :class:`ValueError` if it
        does not fit."""
        try:
            value = self._read(raw)
        except msgspec.ValidationError:
            if self.upgrade is None:
                raise
            return self.keep(self.fit(self._upgraded(_decode(raw))))
        return value if self.immutable else bytes(raw)

    def _upgraded(self, old: Any) -> Any:
        assert self.upgrade is not None
        try:
            return self.upgrade(old)
        except Exception as error:
            raise ValueError(f"upgrade= raised {shortened(error)} for {shortened(old)}") from error

    def _proved(self, value: Any) -> Any:
        try:
            raw = _encode(value)
            back = self._read(raw)
        except Exception as error:  # as in keep
            raise TypeError(self._refusal(value, error)) from error
        # What holds NaN is equal to nothing; bytes are.
        if back == value or (type(back) is type(value) and _encode(back) == raw):
            return back
        raise TypeError(self._refusal(value))

    def _refusal(self, value: object, error: object = "it would come back as another value") -> str:
        if type(value) is int:
            error = "a store keeps ints of 64 bits; keep a larger one as str, or as Decimal"
        elif self._class is not None and not isinstance(value, self._class):
            error = f"it is of type {type(value).__name__}"
        return f"the value {shortened(value)} cannot be kept as {self.words}: {error}"


def encoded(entries: Mapping[Any, Any]) -> bytes:
    """Return a blob of these entries."""
    return _encode(entries)


def reader(key: Any, value: Any) -> Callable[[bytes], dict[Any, Any]]:
    """Return a reader of blobs with keys and values of these types."""
    kind: Any = dict[key, value]
    return msgspec.msgpack.Decoder(cast("type[dict[Any, Any]]", kind)).decode


def optional(kind: Any) -> Any:
    """Return the type of a value or nil."""
    return Optional[kind]  # noqa: UP045 - not every type has ``|``


def timed(kind: Any) -> Any:
    """Return the type of a value with the time when it was written."""
    return tuple[float, kind]
