"""Images of values, which show that a value was changed after it was emitted (law B10).

An image looks into containers and records, however deep they are nested. Everything else stands for itself: an
object of any other class counts as unchanged as long as it is the same object.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final, cast
from uuid import UUID

import msgspec

from stormlet.core import records
from stormlet.core.shortened import shortened
from stormlet.model.plan import TaskPlan

ATOMS: Final = (
    *(type(None), bool, int, float, complex, str, bytes, range),
    *(Decimal, Fraction, date, time, timedelta, UUID, Enum, type),
)
"""Types whose values nobody can change."""


def image(value: object) -> object:
    """The contents of ``value`` now: equal to a later image as long as nothing of it has been changed."""
    try:
        return _image(value, ())
    except RecursionError:  # nested too deeply to be looked into
        return _Same(value)


def can_change(value: object) -> bool:
    """True if a later image of this value could differ."""
    try:
        return _can_change(value)
    except RecursionError:
        return False


class _Same:
    """Equal to itself alone, whatever the object thinks of equality."""

    __slots__ = ("_held",)

    def __init__(self, held: object) -> None:
        self._held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._held is other._held

    def __hash__(self) -> int:
        return id(self._held)


def _can_change(value: object) -> bool:
    if isinstance(value, ATOMS):
        return False
    parts = _parts(value)
    if parts is None:
        return False
    return not _is_frozen(value) or any(map(_can_change, parts))


def _image(value: object, around: tuple[int, ...]) -> object:
    """``around`` are the ids of what the value is a part of: a circle ends there."""
    if isinstance(value, ATOMS):
        return value
    if isinstance(value, set | frozenset):  # without an order, and of what cannot change itself
        return frozenset(cast("set[object]", value))
    parts = _parts(value)
    if parts is None or id(value) in around:
        return _Same(value)
    return type(value), [_image(each, (*around, id(value))) for each in parts]


def _parts(value: object) -> Iterable[object] | None:
    """The members of a container or record, in its order; None for anything else."""
    if isinstance(value, tuple | list | deque | set | frozenset):
        return cast("Iterable[object]", value)
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return [part for item in items for part in item]
    if isinstance(value, bytearray | array):
        return [bytes(cast("bytearray", value))]
    names = field_names(value)
    return None if names is None else [getattr(value, name, None) for name in names]


def field_names(value: object) -> Iterable[str] | None:
    """The fields of a record, an instance of an attrs class included; None for anything else."""
    names = records.field_names(type(value))
    if names is not None:
        return names
    attributes = getattr(type(value), "__attrs_attrs__", None)
    return None if attributes is None else [each.name for each in attributes]


def _is_frozen(value: Any) -> bool:
    if isinstance(value, msgspec.Struct):
        return value.__struct_config__.frozen
    if is_dataclass(value):
        return bool(cast("Any", value).__dataclass_params__.frozen)
    return isinstance(value, tuple | frozenset)


MOST: Final = 10_000
"""Values that are looked after in one run; the first ones, as they are kept until its end."""


@dataclass(frozen=True, slots=True)
class _Emitted:
    task: TaskPlan
    stream: str
    value: object
    image: object
    text: str


class EmittedValues:
    """Notes each value that can be changed, as it was when it was emitted."""

    def __init__(self) -> None:
        self._noted: list[_Emitted] = []

    def note(self, task: TaskPlan, stream: str, value: object) -> None:
        """This task emits this value now."""
        if len(self._noted) < MOST and can_change(value):
            self._noted.append(_Emitted(task, stream, value, image(value), shortened(value)))

    def changes(self) -> Iterator[str]:
        """A line for each value that is not what it was."""
        for each in self._noted:
            if image(each.value) != each.image:
                yield (
                    f"{each.task.name} emitted {each.text} on stream "
                    f"{each.stream!r}, and it was changed afterwards to {shortened(each.value)}; emit a copy (law B10)"
                )
