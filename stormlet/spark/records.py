"""The record types of users, read for what Spark's columns must be to fill them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, NewType, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Struct

from stormlet.errors import InvalidTopology


@dataclass(frozen=True, slots=True)
class RecordFields:
    """What a record type is made of."""

    name: str
    annotations: Mapping[str, object]
    """Field -> its annotation, in the order that :attr:`make` takes them in."""
    make: Callable[..., Any]
    """Makes a record of the values, by position."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One annotation, taken apart."""

    choices: tuple[object, ...]
    """The types that a value may have, without None; none at all for ``Any``."""
    nullable: bool
    """Whether None will do."""


ANYTHING = Wanted((), nullable=True)


def is_record(thing: object) -> bool:
    """Whether it is a class of msgspec.Struct, a dataclass or a NamedTuple."""
    if not isinstance(thing, type):
        return False
    cls = cast("type[Any]", thing)
    return is_dataclass(cls) or issubclass(cls, Struct) or _is_named_tuple(cls)


def _is_named_tuple(cls: type[Any]) -> bool:
    return tuple in cls.__mro__ and hasattr(cls, "_fields")


def fields_of(record: type) -> RecordFields:
    """The fields that the record's constructor takes.

    Raises :class:`~stormlet.errors.InvalidTopology` if it is no record type, or has annotations that mean
    nothing at run time.
    """
    if not is_record(record):
        raise InvalidTopology(
            f"as_={record!r} is no record type; give a class of msgspec.Struct, a dataclass or a NamedTuple"
        )
    try:
        hints = get_type_hints(record, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise InvalidTopology(f"the annotations of {record.__name__} cannot be read: {error}") from None
    parameters = inspect.signature(record).parameters
    annotations = {name: hints.get(name, Any) for name in parameters}
    by_name = any(each.kind is inspect.Parameter.KEYWORD_ONLY for each in parameters.values())
    return RecordFields(record.__name__, annotations, _by_name(record, annotations) if by_name else record)


def wanted(annotation: object) -> Wanted:
    """Take an annotation apart: ``int | None`` wants an int, and None will do."""
    annotation = _bare(annotation)
    if annotation is Any or annotation is object:
        return ANYTHING
    if get_origin(annotation) not in (Union, UnionType):
        return Wanted((annotation,), nullable=annotation in (None, NoneType))
    parts = [wanted(member) for member in get_args(annotation)]
    if ANYTHING in parts:
        return ANYTHING
    choices = (choice for part in parts for choice in part.choices if choice is not NoneType)
    return Wanted(tuple(choices), any(part.nullable for part in parts))


def said(annotation: object) -> str:
    """How an annotation reads in a message."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _bare(annotation: object) -> object:
    while True:
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        else:
            return annotation


def _by_name(record: type, names: Mapping[str, object]) -> Callable[..., Any]:
    def make(*values: object) -> object:
        return record(**dict(zip(names, values, strict=True)))

    return make
