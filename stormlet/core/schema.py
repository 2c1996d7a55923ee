"""Schemas of streams: the fields of the values, a reader for them, and a check that a value fits.

A schema is declared (``outputs=...``) or inferred from a return annotation. Either gives field names, which
are checked when the topology is built; only a declared one is enforced on what is emitted.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from operator import attrgetter, itemgetter
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, NewType, TypeAlias, Union, cast, get_args, get_origin

import msgspec

from stormlet.core.records import class_below, field_names, is_subclass, keys_of
from stormlet.errors import InvalidTopology

FieldName: TypeAlias = str | int
"""A field's name, or its position."""

Reader: TypeAlias = Callable[[object], object]
"""Reads one field of a value, or several as a tuple."""


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """Fields and type of the values of one stream."""

    name: str
    """Name of the type in messages and displays."""
    fields: tuple[str, ...] | None
    """The field names in order; None where they are not known."""
    enforced: bool
    """True if emits are checked by :meth:`misfit`."""
    declared: object = None
    """The type that it was read from; None where there is none."""
    kind: ClassVar[str]
    """``"opaque"``, ``"record"`` (by attribute), ``"dict"`` (by key) or ``"fields"`` (by position)."""

    def reader(self, names: Sequence[FieldName]) -> Reader:
        """Return a reader of these fields: of one as it is, of several as a tuple, of none as the whole value.

        Raises :class:`InvalidTopology` for an unknown field, naming the known ones or the way out.
        """
        if not names:
            return _whole
        try:
            return self._getter([self._locate(name) for name in names])
        except LookupError as error:
            raise InvalidTopology(error.args[0]) from None

    def get(self, value: object, name: FieldName) -> object:
        """Return one field of a value, for ``tup["field"]``.

        Raises KeyError for an unknown field, TypeError where the value has no fields to be read by name.
        """
        raise NotImplementedError

    def misfit(self, value: object) -> str | None:
        """Return the reason why a value does not fit, or None if it does. Only an :attr:`enforced` schema rejects
        it."""
        raise NotImplementedError

    def _locate(self, name: FieldName) -> FieldName:
        """Return the getter's key of a field; raise a LookupError with a message for the user."""
        raise NotImplementedError

    def _getter(self, keys: Sequence[FieldName]) -> Reader:
        return cast(Reader, itemgetter(*keys))  # of one key the item, of several a tuple: as readers promise

    def _position(self, name: FieldName) -> int:
        fields = self.fields or ()
        if name in fields:
            return fields.index(name)
        if isinstance(name, int) and -len(fields) <= name < len(fields):
            return name
        raise KeyError(f"no field {name!r} in {self.name}, which has {_listed(fields)}")


class Opaque(Schema, frozen=True):
    """Values of any type, without known field names."""

    kind: ClassVar[str] = "opaque"

    def get(self, value: object, name: FieldName) -> object:
        """Look the name up in a mapping, or the position in a sequence; nothing else can be read."""
        if isinstance(value, Mapping) or (isinstance(name, int) and isinstance(value, Sequence)):
            return cast(Mapping[FieldName, object], value)[name]
        raise TypeError(f"{type(value).__name__} value has no field {name!r}: {self._unknown(name)}")

    def misfit(self, value: object) -> str | None:
        """Everything fits."""
        return None

    def _locate(self, name: FieldName) -> FieldName:
        if isinstance(name, int):
            return name
        raise LookupError(f"no field {name!r}: {self._unknown(name)}, or group by a key function")

    def _unknown(self, name: FieldName) -> str:
        return (
            f"the stream's values ({self.name}) have no known fields; annotate the producing function with "
            f"a record type, or declare outputs=RecordType or outputs=[{name!r}, ...]"
        )


class Record(Schema, frozen=True, kw_only=True):
    """Instances of a msgspec.Struct, a dataclass or a NamedTuple."""

    fields: tuple[str, ...]
    record: type
    kind: ClassVar[str] = "record"

    def get(self, value: object, name: FieldName) -> object:
        """Read the attribute."""
        if name in self.fields:  # a call less on the usual way
            return getattr(value, name)
        return getattr(value, self._locate(name))

    def misfit(self, value: object) -> str | None:
        """Only instances of the record type fit."""
        return None if isinstance(value, self.record) else _expected(self.name, value)

    def _locate(self, name: FieldName) -> str:
        return self.fields[self._position(name)]

    def _getter(self, keys: Sequence[FieldName]) -> Reader:
        return cast(Reader, attrgetter(*cast(Sequence[str], keys)))


class Keyed(Schema, frozen=True, kw_only=True):
    """Dicts. The keys of a TypedDict are known; those of a plain dict are not, and any name is taken on trust."""

    required: tuple[str, ...]
    kind: ClassVar[str] = "dict"

    def get(self, value: object, name: FieldName) -> object:
        """Read the key."""
        return cast(Mapping[FieldName, object], value)[self._locate(name)]

    def misfit(self, value: object) -> str | None:
        """Dicts with all required keys fit; more keys do no harm."""
        if not isinstance(value, dict):
            return _expected(self.name, value)
        missing = [name for name in self.required if name not in value]
        return f"Expected {self.name} but got a dict without {_listed(missing)}" if missing else None

    def _locate(self, name: FieldName) -> FieldName:
        return name if self.fields is None else self.fields[self._position(name)]


class FieldList(Schema, frozen=True, kw_only=True):
    """Plain tuples (or lists) with named positions, as in Storm."""

    fields: tuple[str, ...]
    kind: ClassVar[str] = "fields"

    def get(self, value: object, name: FieldName) -> object:
        """Read the position."""
        return cast(Sequence[object], value)[self._position(name)]

    def misfit(self, value: object) -> str | None:
        """Tuples and lists of the right length fit."""
        if not isinstance(value, (tuple, list)):
            return _expected(f"a tuple of {self.name}", value)
        expected, got = len(self.fields), len(cast(Sequence[object], value))
        return None if got == expected else f"Expected {expected} fields but got {got}"

    def _locate(self, name: FieldName) -> int:
        return self._position(name)


def schema_of(declared: object, *, enforced: bool = True) -> Schema:
    """Return the schema that a user declares by ``outputs``.

    A record class (msgspec.Struct, dataclass, NamedTuple, TypedDict, dict) or a list or tuple of field names
    has fields; None and any other type are opaque, and never enforced. Raises :class:`InvalidTopology`
    for names that are not strings or occur twice, and for anything that is neither names nor a type.
    """
    if isinstance(declared, (list, tuple)):
        return _field_list(cast(Sequence[object], declared), enforced)
    if not (declared is None or _is_type(declared)):
        raise InvalidTopology(f"outputs={declared!r} is neither a type nor a list of field names")
    return _schema_of_type(declared, enforced)


def schema_from_annotation(annotation: object) -> Schema:
    """Return the schema of the values that a function with this return annotation produces; it is not
    enforced.

    The annotation must be resolved (no strings inside). ``Iterator[T]`` and its kin, sync and async, and
    coroutines produce T; ``None`` and ``To[...]``, which goes to another stream, produce nothing here (law
    B1). A union of which more than one type remains is opaque.
    """
    return _schema_of_type(_produced(annotation), enforced=False)


def _field_list(names: Sequence[object], enforced: bool) -> FieldList:
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidTopology(f"field names are strings, not {name!r}")
        if name in names[:position]:
            raise InvalidTopology(f"duplicate field {name!r}")
    fields = cast(tuple[str, ...], tuple(names))
    return FieldList(name=f"({', '.join(fields)})", fields=fields, enforced=enforced)


def _schema_of_type(declared: object, enforced: bool) -> Schema:
    record = class_below(declared)
    if record is not None:
        if is_subclass(record, dict):
            keys, required = keys_of(record)
            return Keyed(
                name=record.__name__, fields=keys, enforced=enforced, required=required, declared=declared
            )
        fields = field_names(record)
        if fields is not None:
            return Record(
                name=record.__name__, fields=fields, enforced=enforced, record=record, declared=declared
            )
    return Opaque(name=_display(declared), fields=None, enforced=False, declared=declared)


def _is_type(declared: object) -> bool:
    return isinstance(declared, (type, NewType)) or declared is Any or get_origin(declared) is not None


_AWAITED = {Awaitable: 0, Coroutine: 2}
"""The place of the result's type among the type arguments."""
_ITERATED = (Iterator, Iterable, Generator, AsyncIterator, AsyncIterable, AsyncGenerator)


def _produced(annotation: object) -> object:
    """Return the type of the values: the result of an awaitable, then the items of an iterator, without the members of
    a union that produce nothing."""
    annotation = _relevant(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in _AWAITED and arguments:
        return _produced(arguments[_AWAITED[origin]])
    if origin in _ITERATED and arguments:
        return _relevant(arguments[0])
    return annotation


def _relevant(annotation: object) -> object:
    if get_origin(annotation) is Annotated:
        return _relevant(get_args(annotation)[0])
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    relevant = [member for member in members if not _produces_nothing(member)]
    if not relevant:
        return None
    return relevant[0] if len(relevant) == 1 else annotation


def _produces_nothing(annotation: object) -> bool:
    bare = get_origin(annotation) or annotation
    # To by its name: it is declared above this layer.
    return bare is NoneType or (
        isinstance(bare, type) and bare.__name__ == "To" and bare.__module__.startswith("stormlet.")
    )


def _display(declared: object) -> str:
    if declared is None:
        return "object"
    return declared.__name__ if isinstance(declared, (type, NewType)) else str(declared)


def _whole(value: object) -> object:
    return value


def _expected(what: str, value: object) -> str:
    return f"Expected {what} but got {type(value).__name__}"


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(repr, names)) or "no fields"
