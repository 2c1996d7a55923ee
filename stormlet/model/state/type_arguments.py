"""The type that a class gives to the interface that it derives from, as the annotations say."""

from __future__ import annotations

from typing import Any, TypeVar, cast, get_args, get_origin


def first_argument(kind: object, base: type) -> Any:
    """Return the first type argument of ``base`` in ``kind``, a class or a class with type arguments, followed through
    the type variables of the classes between; Any without."""
    found = _found(kind, base)
    return Any if isinstance(found, TypeVar) else found


def _found(kind: object, base: type) -> Any:
    cls = cast("Any", get_origin(kind) or kind)
    parameters = cast("tuple[object, ...]", cls.__parameters__)
    bases = cast("tuple[object, ...]", cls.__dict__.get("__orig_bases__", cls.__bases__))
    above = next((each for each in bases if _derives(get_origin(each) or each, base)), None)
    found = parameters[0] if above is None else _found(above, base)
    given = zip(parameters, get_args(kind), strict=False)
    return next((argument for parameter, argument in given if parameter is found), found)


def _derives(cls: object, base: type) -> bool:
    return isinstance(cls, type) and issubclass(cls, base)
