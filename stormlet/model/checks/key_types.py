"""Grouping keys without a stable hash, found by their annotations: the rules of :mod:`stormlet.core.keys`, for types
instead of values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

from stormlet.core.groupings import Fields, PartialKey
from stormlet.core.keys import has_stable_hash
from stormlet.core.records import bare, class_below, compared_fields, is_subclass, known_annotations
from stormlet.core.schema import Schema


def unroutable_types(schema: Schema, grouping: Fields | PartialKey) -> list[type]:
    """Return the types without a stable hash that a key of this grouping may contain, each once.

    Empty where every key can be routed, and where the annotations do not say what a key is.
    """
    seen: dict[object, None] = {}
    found = (kind for each in key_annotations(schema, grouping) for kind in _unroutable(each, seen))
    return list(dict.fromkeys(found))


def key_annotations(schema: Schema, grouping: Fields | PartialKey) -> list[object]:
    """Return the annotations of the parts of a key: one for each field, one for the whole value or the result of a key
    function; none for a part without an annotation."""
    if grouping.names:
        return [hint for name in grouping.names for hint in _of_field(schema, name)]
    if grouping.key is not None:
        return _result(grouping.key)
    return [] if schema.declared is None else [schema.declared]


def _of_field(schema: Schema, name: str | int) -> Iterator[object]:
    """The annotation of one field, by its name, or by its position in a record with known fields."""
    fields = schema.fields or ()
    field = fields[name] if isinstance(name, int) and fields else name
    hints = known_annotations(class_below(schema.declared))
    if field in hints:
        yield hints[cast(str, field)]


def _result(function: Callable[..., object]) -> list[object]:
    hints = known_annotations(inspect.unwrap(function))
    return [hints["return"]] if "return" in hints else []


def _unroutable(annotation: object, seen: dict[object, None]) -> Iterator[type]:
    """Find the types without a stable hash in an annotation; ``seen`` are the classes looked into before, as a record
    may contain itself."""
    annotation = bare(annotation)
    origin = get_origin(annotation)
    if origin in (Union, UnionType, tuple, list, dict):
        for part in get_args(annotation):
            yield from _unroutable(part, seen)
    elif origin is not Literal:
        kind = class_below(annotation)
        if kind is not None and kind not in seen:
            seen[kind] = None
            yield from _unroutable_class(kind, seen)


def _unroutable_class(kind: type, seen: dict[object, None]) -> Iterator[type]:
    if has_stable_hash(kind):
        for part in _compared_annotations(kind):
            yield from _unroutable(part, seen)
    elif not _is_open(kind):
        yield kind


def _is_open(kind: type) -> bool:
    """Return True if its values are of other classes, so that nothing is known of them."""
    return kind in (object, Any) or getattr(kind, "_is_protocol", False) or inspect.isabstract(kind)


def _compared_annotations(kind: type) -> list[object]:
    """Return the annotations of the fields that a record compares; none for any other class."""
    hints = known_annotations(kind)
    names = hints if is_subclass(kind, dict) else compared_fields(kind)
    return [hints[name] for name in names if name in hints]
