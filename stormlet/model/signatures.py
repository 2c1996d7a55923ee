"""Signatures and annotations of the user's functions.

Those of plain functions are read once and kept: each task asks again, and so does each of the thousands of runs of a
simulation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from stormlet.core.records import AS_WRITTEN, annotations_of

R = TypeVar("R")

_SIGNATURES: WeakKeyDictionary[FunctionType, inspect.Signature] = WeakKeyDictionary()
_HINTS: WeakKeyDictionary[FunctionType, Mapping[str, object]] = WeakKeyDictionary()

POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


def signature_of(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature, with annotations as they are written: a name may be imported for type checkers only.

    Raises as :func:`inspect.signature` does.
    """
    formatted: Mapping[str, Any] = {"annotation_format": AS_WRITTEN} if AS_WRITTEN else {}
    return inspect.signature(function, **formatted)


def can_be_called(function: Callable[..., object], *arguments: object) -> bool:
    """Return True if it can be called with just these arguments, or if Python does not know its signature."""
    try:
        _signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def positional_parameters(function: Callable[..., object]) -> int | None:
    """Return the number of positional arguments that the function takes; None where Python does not know its signature,
    as of some builtins."""
    try:
        parameters = _signature(function).parameters.values()
    except ValueError:
        return None
    return sum(parameter.kind in POSITIONAL for parameter in parameters)


def parameter_names(function: Callable[..., object]) -> tuple[str, ...] | None:
    """Return the names of the parameters that can be given by position; None where Python does not know them."""
    try:
        parameters = _signature(function).parameters.values()
    except ValueError:
        return None
    return tuple(parameter.name for parameter in parameters if parameter.kind in POSITIONAL)


def takes_resume(function: Callable[..., object]) -> bool:
    """Return True if a generator function can go on after the message whose id is given as ``resume=``."""
    try:
        parameters = _signature(function).parameters
    except ValueError:
        return False
    resume = parameters.get("resume")
    return resume is not None and resume.kind is not inspect.Parameter.POSITIONAL_ONLY


def returned(function: object) -> object:
    """Return the return annotation; None without one, and for one that only type checkers understand."""
    if not callable(function):
        return None
    try:
        return _once(_HINTS, annotations_of, function).get("return")
    except TypeError:
        return None


def _signature(function: Callable[..., object]) -> inspect.Signature:
    return _once(_SIGNATURES, signature_of, function)


def _once(
    known: WeakKeyDictionary[FunctionType, R],
    read: Callable[[Callable[..., object]], R],
    function: Callable[..., object],
) -> R:
    # Other callables may be equal to each other, without a hash, or changed between two calls.
    if not isinstance(function, FunctionType):
        return read(function)
    found = known.get(function)
    if found is None:
        found = known[function] = read(function)
    return found
