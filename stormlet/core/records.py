"""Record types of users: their fields, and the annotations of these.

A record is an instance of a :class:`msgspec.Struct`, a dataclass or a NamedTuple. TypedDicts are dicts with known keys.
Annotations are read at run time: postponed ones are resolved where that is possible, and not at all otherwise, as a
name may be imported for type checkers only.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from importlib import import_module
from types import FunctionType
from typing import (
    Annotated,
    Any,
    Final,
    NewType,
    NotRequired,
    Required,
    TypeGuard,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

AS_WRITTEN: Final[Any] = (
    import_module("annotationlib").Format.FORWARDREF if sys.version_info >= (3, 14) else None
)
"""The format that raises nothing. From Python 3.14 on, annotations are evaluated when they are read."""

GENERATED: Final = ("<string>", "<attrs generated ")
"""Beginnings of the names of files that the code of dataclasses and attrs classes seems to come from."""


def is_record(thing: object) -> TypeGuard[type]:
    """Return True for a record class."""
    return isinstance(thing, type) and field_names(thing) is not None


def field_names(record: type) -> tuple[str, ...] | None:
    """Return the fields of a record class in their order; None for any other class."""
    if is_subclass(record, msgspec.Struct):
        return cast("type[msgspec.Struct]", record).__struct_fields__
    if is_subclass(record, tuple):
        return getattr(record, "_fields", None)  # of a NamedTuple
    if dataclasses.is_dataclass(record):
        return tuple(each.name for each in dataclasses.fields(record))
    return None


def compared_fields(record: type) -> tuple[str, ...]:
    """Return the fields by which ``==`` compares two records of a class; none for any other class."""
    names = field_names(record) or ()
    if dataclasses.is_dataclass(record):
        return tuple(each.name for each in dataclasses.fields(record) if each.compare)
    return names


def compares_fields(cls: type) -> bool:
    """Return True if the class itself, not one of its bases, is a dataclass with ``eq=True`` and the ``==`` that
    follows from it."""
    parameters = cls.__dict__.get("__dataclass_params__")
    return parameters is not None and bool(parameters.eq) and not defines_equality(cls)


def defines_equality(cls: type) -> bool:
    """Return True if the class itself, not one of its bases, has an ``__eq__`` that its author has written."""
    written = cls.__dict__.get("__eq__")
    # A dataclass keeps one that is there, and makes another from a text, as attrs does.
    return isinstance(written, FunctionType) and not written.__code__.co_filename.startswith(GENERATED)


def keys_of(cls: type) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the keys of a TypedDict and the required ones among them; a plain dict's keys are not known."""
    required: frozenset[str] | None = getattr(cls, "__required_keys__", None)
    if required is None:
        return None, ()
    keys = tuple(written_annotations(cls))  # in their order; the required ones are an unordered set
    marks = _marks_of(cls)
    return keys, tuple(key for key in keys if marks.get(key, key in required))


def _marks_of(cls: type) -> dict[str, bool]:
    """Return the keys with a mark, True for Required and False for NotRequired. Python itself misses these marks in
    postponed annotations."""
    marks: dict[object, bool] = {Required: True, NotRequired: False}
    hints = known_annotations(cls, include_extras=True)
    return {key: marks[get_origin(hint)] for key, hint in hints.items() if get_origin(hint) in marks}


def written_annotations(annotated: Any) -> Mapping[str, object]:
    """Return the own annotations of a class or function, not resolved: a str or a ForwardRef may stand for a name."""
    return inspect.get_annotations(annotated, **({"format": AS_WRITTEN} if AS_WRITTEN else {}))


def annotations_of(annotated: object, *, include_extras: bool = False) -> Mapping[str, object]:
    """Return the annotations of a class or function, resolved, and without the metadata of ``Annotated`` unless
    ``include_extras`` is set.

    Raises :class:`TypeError` for an object that has none, and for annotations that only type checkers understand.
    """
    try:
        return get_type_hints(cast("Any", annotated), include_extras=include_extras)
    except (NameError, AttributeError, SyntaxError) as error:
        raise TypeError(str(error)) from error


def known_annotations(annotated: object, *, include_extras: bool = False) -> Mapping[str, object]:
    """Return what :func:`annotations_of` returns, and nothing where that raises."""
    try:
        return annotations_of(annotated, include_extras=include_extras)
    except TypeError:
        return {}


def is_subclass(cls: type, base: type) -> bool:
    """Do as ``issubclass``, which type checkers take as the proof that ``cls`` has type arguments, unknown ones."""
    return issubclass(cls, base)


def bare(annotation: object) -> object:
    """Return the type below NewType and Annotated."""
    if isinstance(annotation, NewType):
        return bare(annotation.__supertype__)
    return bare(get_args(annotation)[0]) if get_origin(annotation) is Annotated else annotation


def class_below(annotation: object) -> type | None:
    """Return the class below Annotated, NewType and type arguments, if there is one."""
    kind = bare(annotation)
    kind = get_origin(kind) or kind
    return kind if isinstance(kind, type) else None
