"""Types of keys of which equal ones may have different bytes, so that a store would not find the one by the other.

These are numbers and times with more than one spelling, and records: one may compare less than its fields, or have
fields that are left out of its bytes where they are the default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, cast

from msgspec import inspect

from stormlet.core.records import defines_equality
from stormlet.core.state.codecs import first_part

BASIC: Final = (inspect.DecimalType, inspect.TimeType, inspect.FrozenSetType)
"""Of ``1.0`` and ``1.00``, two zones of a time, two orders."""
CLASSES: Final = (inspect.StructType, inspect.DataclassType, inspect.NamedTupleType, inspect.EnumType)
SMALL: Final = range(-5, 257)
"""Ints of which CPython has one object each."""


def is_ambiguous(kind: Any) -> bool:
    """Return True if equal keys of this type may have different bytes."""
    return first_part(inspect.type_info(kind), (*BASIC, *CLASSES), leave_out=_is_plain) is not None


def _is_plain(info: object) -> bool:
    """Return True for a class whose equal instances have equal fields, and bytes that follow from these."""
    if isinstance(info, inspect.StructType) and _leaves_fields_out(info):
        return False
    return isinstance(info, CLASSES) and not _compares_otherwise(info.cls)


def _compares_otherwise(kind: type) -> bool:
    if defines_equality(next(base for base in kind.__mro__ if "__eq__" in base.__dict__)):
        return True
    of_attrs = cast("Sequence[Any]", getattr(kind, "__attrs_attrs__", ()))
    if dataclasses.is_dataclass(kind):
        return not all(each.compare for each in dataclasses.fields(kind))
    return not all(each.eq for each in of_attrs)


def _leaves_fields_out(info: inspect.StructType) -> bool:
    """Return True for a record in which a default is left out where it is the same object, and is written where it is
    an equal one."""
    leaves_out = info.cls.__struct_config__.omit_defaults and not info.array_like
    return leaves_out and not all(each.required or _is_single(each) for each in info.fields)


def _is_single(field: inspect.Field) -> bool:
    """Return True if what is equal to the default, and of the field's type, is always the same object."""
    default: object = field.default
    if type(default) is int:
        return isinstance(field.type, inspect.IntType) and default in SMALL
    if type(default) is str:
        return isinstance(field.type, inspect.StrType) and not default
    return default is None or isinstance(default, bool | Enum)
