"""State that functions keep from one call to the next: the object that one is a method of, cells of a closure, and
arguments that are bound to it.

Functions travel by value, and each partition has a copy of theirs. So what they change there is seen by nobody else.
Whatever is hashed by its value is taken for unchangeable. A name at the top level of a module is not looked at: of
that, each process has its own anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import msgspec


def kept_by(function: object) -> str:
    """Say what a function keeps that can be changed, as "is a closure over 'seen', a set"; empty if there is
    nothing."""
    return next(_kept_by(function), "")


def _kept_by(function: object) -> Iterator[str]:
    if isinstance(function, partial):
        bound = cast("partial[object]", function)
        given = (*bound.args, *bound.keywords.values())
        yield from (f"is bound to {_a(each)}" for each in given if _can_change(each))
        yield from _kept_by(bound.func)
    elif isinstance(function, MethodType | BuiltinMethodType):
        owner: object = function.__self__
        if _can_change(owner):
            yield f"is the method {function.__name__!r} of {_a(owner)}"
    elif isinstance(function, FunctionType):
        cells = _cells(function).items()
        yield from (f"is a closure over {name!r}, {_a(each)}" for name, each in cells if _can_change(each))
    elif hasattr(function, "__wrapped__"):  # as by functools.cache
        yield from _kept_by(cast("Any", function).__wrapped__)
    elif _can_change(function):
        yield f"is {_a(function)}"


def _cells(function: FunctionType) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # nothing has been assigned yet
            continue
    return found


def _can_change(thing: object) -> bool:
    if isinstance(thing, type | FunctionType | ModuleType | partial):
        return False
    if isinstance(thing, MethodType | BuiltinMethodType):
        owner: object = thing.__self__
        return _can_change(owner)
    kind: type[object] = type(thing)
    if issubclass(kind, msgspec.Struct):
        return not kind.__struct_config__.frozen
    if getattr(kind, "__hash__", None) is not object.__hash__:
        return getattr(kind, "__hash__", None) is None
    return bool(getattr(thing, "__dict__", None)) or any(vars(each).get("__slots__") for each in kind.__mro__)


def _a(thing: object) -> str:
    name = type(thing).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
