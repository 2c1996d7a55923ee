"""Values as JSON together with the type from which they can be rebuilt, for dead letters (law S6).

A value is written with a *type expression* in Python's notation: ``str``, ``tuple[str, datetime.datetime]``,
``shop.Order``, ``{'id': uuid.UUID, 'note': str}``. msgspec does both directions; nothing is pickled, and a
type is looked up only among modules that are loaded already. Whether the way back is exact is tried when the
value is written, so that a record's ``__post_init__`` runs once more. Where it is not exact, there is no type
expression, and the text is the ``repr``, for people.
"""

from __future__ import annotations

import ast
import builtins
import datetime as dt
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypedDict, cast

import msgspec

from stormlet.core.records import field_names
from stormlet.core.shortened import shown

PLAIN: Final[dict[type, str]] = {
    type(None): "None",
    **{kind: kind.__name__ for kind in (bool, int, float, str, list, dict)},
}
"""The types that JSON itself distinguishes. ``list`` and ``dict`` mean that all their items are plain, too."""
SCALARS: Final = {kind: name for kind, name in PLAIN.items() if kind not in (list, dict)}


class Portable(NamedTuple):
    """A value as it is written."""

    json: msgspec.Raw
    """The value, or its ``repr`` as a string where it cannot be rebuilt."""
    type: str | None
    """The type expression; None where it cannot be rebuilt."""


class CannotRebuild(Exception):
    """The value does not survive the way to JSON and back; the message gives the reason."""


def portable(value: object) -> Portable:
    """Return the value as JSON. Never raises, whatever the value is."""
    with suppress(Exception):  # a user's class may raise anything
        expression = _expression(value)
        text = msgspec.json.encode(value)
        if _same(rebuild(text, expression), value):
            return Portable(msgspec.Raw(text), expression)
    return Portable(msgspec.Raw(msgspec.json.encode(shown(value))), None)


def rebuild(text: bytes | msgspec.Raw, expression: str, records: Mapping[str, type] | None = None) -> object:
    """Rebuild a value. ``records`` are classes by qualified name, for those that no loaded module has under
    the name in the expression, as after a program that was run as ``__main__``.

    Raises :class:`CannotRebuild` for an unknown type, and for a text that does not fit it.
    """
    kind = _Resolver(records or {}).resolve(expression)
    try:
        return msgspec.json.decode(text, type=kind)
    except Exception as error:  # a record's own __post_init__ may raise anything
        raise CannotRebuild(f"it is no {expression}: {error}") from error


# From a value to its type expression.


def _expression(value: object) -> str:
    kind = type(value)
    if kind is dict:
        return _of_dict(cast("dict[object, object]", value))
    if kind in (list, tuple, set, frozenset):
        return _of_collection(kind.__name__, cast("Collection[object]", value))
    return PLAIN.get(kind) or _qualified(kind)


def _of_collection(name: str, items: Collection[object]) -> str:
    if _are_scalars(items):  # at once: there may be millions
        return name
    each = [_expression(item) for item in items]
    kinds = dict.fromkeys(each)
    if _are_plain(kinds):
        return name
    if name == "tuple" and len(kinds) > 1:
        return f"tuple[{', '.join(each)}]"
    return f"tuple[{_only(kinds)}, ...]" if name == "tuple" else f"{name}[{_only(kinds)}]"


def _of_dict(items: Mapping[object, object]) -> str:
    each = {key: _expression(value) for key, value in items.items()}
    kinds = dict.fromkeys(each.values())
    if any(type(key) is not str for key in items):
        return f"dict[{_only(dict.fromkeys(map(_expression, items)))}, {_only(kinds)}]"
    if _are_plain(kinds):
        return "dict"
    return f"{{{', '.join(f'{key!r}: {kind}' for key, kind in each.items())}}}"


def _only(kinds: Mapping[str, None]) -> str:
    if len(kinds) > 1:
        raise CannotRebuild(f"different types stand side by side: {', '.join(kinds)}")
    return next(iter(kinds))


def _are_plain(kinds: Mapping[str, None]) -> bool:
    return all(kind in PLAIN.values() for kind in kinds)


def _are_scalars(items: Iterable[object]) -> bool:
    return dict.fromkeys(map(type, items)).keys() <= SCALARS.keys()


def _qualified(kind: type) -> str:
    return (
        kind.__qualname__
        if kind.__module__ == builtins.__name__
        else f"{kind.__module__}.{kind.__qualname__}"
    )


# From a type expression to the type.


class _Resolver:
    def __init__(self, records: Mapping[str, type]) -> None:
        self._records = records

    def resolve(self, expression: str) -> Any:
        try:
            return self._type(ast.parse(expression, mode="eval").body)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
            raise CannotRebuild(f"{expression!r} is no type: {error}") from error

    def _type(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(None):
                return None
            case ast.Constant(value) if value is Ellipsis:
                return value
            case ast.Dict(keys=keys, values=values):
                return self._typed_dict(keys, values)
            case ast.Subscript(value=ast.Name(name), slice=argument):
                return self._named(name)[self._arguments(argument)]
            case ast.Name() | ast.Attribute():
                return self._named(ast.unparse(node))
            case _:
                raise CannotRebuild(f"{ast.unparse(node)} is no type")

    def _arguments(self, node: ast.expr) -> Any:
        return tuple(map(self._type, node.elts)) if isinstance(node, ast.Tuple) else self._type(node)

    def _typed_dict(self, keys: list[ast.expr | None], values: list[ast.expr]) -> Any:
        names = [ast.literal_eval(key) for key in keys if key is not None]
        types = map(self._type, values)
        # The functional form is for any keys; type checkers want to see them.
        return cast("Any", TypedDict)("Value", dict(zip(names, types, strict=True)))

    def _named(self, name: str) -> Any:
        found = _loaded(name) or self._records.get(name) or self._of_records(name)
        if found is None:
            raise CannotRebuild(f"there is no class {name} in any loaded module")
        return found

    def _of_records(self, name: str) -> type | None:
        """Return the record of the topology whose name without the module is the end of ``name``."""
        return next((kind for known, kind in self._records.items() if name.endswith(f".{known}")), None)


def _loaded(name: str) -> type | None:
    """Return the class of that full name, if its module is loaded and has it."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is not None:
            return _class_in(module, parts[length:])
    return _class_in(builtins, parts)


def _class_in(found: object, path: list[str]) -> type | None:
    for name in path:
        found = vars(found).get(name) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) else None


# The comparison of a value with the one rebuilt.


def _same(one: object, other: object) -> bool:
    """Return True for equal values of the same types all the way down; ``==`` alone has 1 == 1.0 == True."""
    if type(one) is not type(other):
        return False
    match one:
        case list() | tuple():
            return _all_same(cast("Collection[object]", one), cast("Collection[object]", other))
        case dict():
            return _same_mapping(cast("Mapping[object, object]", one), cast("Mapping[object, object]", other))
        case dt.datetime() | dt.time():
            return one == other and _clock(one) == _clock(cast("dt.datetime | dt.time", other))
        case _:
            return _same_record(one, other)


def _clock(time: dt.datetime | dt.time) -> object:
    """Return the part of a time that == does not compare: its offset, or without a zone, its fold."""
    return time.fold if time.tzinfo is None else time.utcoffset()


def _all_same(one: Collection[object], other: Collection[object]) -> bool:
    if _are_scalars(one):  # at once, here too
        return [*map(type, one)] == [*map(type, other)] and [*one] == [*other]
    return len(one) == len(other) and all(map(_same, one, other))


def _same_mapping(one: Mapping[object, object], other: Mapping[object, object]) -> bool:
    return _all_same(one.keys(), other.keys()) and _all_same(one.values(), other.values())


def _same_record(one: object, other: object) -> bool:
    fields = field_names(type(one))
    if fields is None:
        return bool(one == other)
    return all(_same(getattr(one, name), getattr(other, name)) for name in fields)
