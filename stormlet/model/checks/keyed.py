"""Rules for bolts with state, checked when they are added (law K1, K2). ``where`` opens error messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, GenericAlias
from typing import Any, cast

from stormlet.core.groupings import FieldNames, Fields, Global, Grouping
from stormlet.core.records import known_annotations
from stormlet.core.schema import Schema
from stormlet.core.shortened import shortened
from stormlet.core.state.codecs import single_class, words_of
from stormlet.core.state.tables import Declared
from stormlet.errors import InvalidTopology
from stormlet.model.checks.key_types import key_annotations
from stormlet.model.components import BoltBase
from stormlet.model.logic import component_class, not_at_once, what_is_called
from stormlet.model.signatures import can_be_called, parameter_names
from stormlet.model.state.declared import Declaration, Value
from stormlet.model.state.keyed import KeyedBolt, declarations_of, states_of
from stormlet.model.streams import StreamId, Subscription


def check_stateless(where: str, logic: object) -> None:
    """Raise :class:`InvalidTopology` for a state declared by a bolt that has no keys."""
    made = component_class(logic)
    if made is not None and not issubclass(made, KeyedBolt):
        for name in declarations_of(made):
            raise InvalidTopology(
                f"{where}: {made.__name__} declares the state {name!r} and is no KeyedBolt; derive it from "
                f"KeyedBolt[key, input, output] instead of {_base(made)}"
            )


def _base(made: type[Any]) -> str:
    return next(
        (each.__name__ for each in made.__mro__ if each.__module__ == BoltBase.__module__), "its base"
    )


def states_of_class(where: str, made: type[KeyedBolt[Any, Any, Any]]) -> Mapping[str, Declared]:
    """Return the states of a bolt class; raise :class:`InvalidTopology` for one that cannot be kept."""
    _check_names(where, made)
    _check_merge(where, made)
    for name, slot in declarations_of(made).items():
        _check_state(where, name, slot.declaration)
    return states_of(made)


def _check_names(where: str, made: type[Any]) -> None:
    """Refuse a name that a class and one of its bases both declare."""
    owners: dict[str, str] = {}
    for base in reversed(made.__mro__):
        for name in vars(base).keys() & declarations_of(base).keys():
            if name in owners:
                raise InvalidTopology(
                    f"{where}: {base.__name__} declares the state {name!r} again, which {owners[name]} declares; give "
                    f"it another name"
                )
            owners[name] = base.__name__


def _check_merge(where: str, made: type[KeyedBolt[Any, Any, Any]]) -> None:
    """Refuse a ``merge`` that cannot be called with another state of the key."""
    found = inspect.getattr_static(made, "merge")
    if not (isinstance(found, FunctionType) and _takes_other(found, made)):
        raise InvalidTopology(
            f"{where}: merge of {made.__name__} is to fold in the state that other inputs of a key have left; write "
            f"def merge(self, other: Self) -> None, or give it another name"
        )


def _takes_other(merge: FunctionType, made: type[Any]) -> bool:
    """Return True if a method takes an instance of its class, and returns when it is done."""
    if (
        not can_be_called(merge, None, None)
        or inspect.iscoroutinefunction(merge)
        or inspect.isgeneratorfunction(merge)
    ):
        return False
    names = parameter_names(merge) or ()
    kind = known_annotations(merge).get(names[1]) if len(names) > 1 else None
    return kind is Any or not isinstance(kind, type) or issubclass(made, kind)


def _check_state(where: str, name: str, declaration: Declaration) -> None:
    fault = declaration.fault() or _fault_of_upgrade(declaration.declared.upgrade)
    if fault is not None:
        raise InvalidTopology(f"{where}: state {name!r}: {fault}")


def _fault_of_upgrade(upgrade: object) -> str | None:
    """Seen here, as nobody calls it before there is state of another type, long after it was written."""
    if upgrade is None:
        return None
    fault = not_at_once(upgrade) if callable(upgrade) else "cannot be called"
    if not fault:
        return None
    return f"upgrade={shortened(upgrade)} {fault}; pass a plain function that returns the new value of an old one"


def states_of_function(where: str, function: object, state: object) -> Mapping[str, Declared]:
    """Return the state of a function with ``state=``, by the name of its second parameter; raise
    :class:`InvalidTopology` if there is none, or the state cannot be kept."""
    if not isinstance(state, Value):
        raise InvalidTopology(
            f"{where}: state={state!r} is no state; pass state=Value(int, 0), or derive from KeyedBolt"
        )
    if component_class(function) is not None or isinstance(what_is_called(function), type):
        raise InvalidTopology(f"{where}: state= is for functions; a class declares its states as attributes")
    called = cast("Callable[..., object]", function)
    names = parameter_names(called)
    if not can_be_called(called, None, None) or names is None or len(names) < 2:
        raise InvalidTopology(
            f"{where}: with state= the function takes the value and a cell of the state; write def "
            f"{getattr(what_is_called(function), '__name__', 'function')}(value, total: Cell[int])"
        )
    declaration = cast("Value[Any]", cast("object", state))
    _check_state(where, names[1], declaration)
    return {names[1]: declaration.declared}


def check_calls(where: str, logic: object, concurrency: int, executor: str) -> None:
    """Raise :class:`InvalidTopology` for calls that could overlap where they must not (law K2), or that touch state on
    another thread."""
    if executor == "thread":
        raise InvalidTopology(
            f'{where} has state, which belongs to the loop\'s thread, and cannot run with executor="thread"; make it '
            f"asynchronous, and await asyncio.to_thread(...) for what blocks"
        )
    if concurrency > 1 and not _is_async(logic):
        raise InvalidTopology(
            f"{where} has state, and with concurrency={concurrency} its calls would overlap only if they awaited; make "
            f"it asynchronous, or use parallelism= instead"
        )


def _is_async(logic: object) -> bool:
    made = component_class(logic)
    called = what_is_called(logic) if made is None else getattr(made, "execute", None)
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def check_groupings(
    where: str, inputs: Iterable[Subscription[Any]], key: object, schema_of: Callable[[StreamId], Schema]
) -> None:
    """Raise :class:`InvalidTopology` unless all inputs are grouped by keys of one type, as far as that is known.
    ``key`` is the declared one."""
    known: tuple[str, Any] | None = None if key is Any else ("the bolt is declared", key)
    seen: dict[StreamId, None] = {}
    for each in inputs:
        if each.source in seen:
            raise InvalidTopology(f"{where} has state and two inputs from {each.source}; subscribe it once")
        seen[each.source] = None
        found = _key_of(where, each.source, each.grouping, schema_of(each.source))
        if found is None:
            continue
        if known is not None and _differ(known[1], found):
            raise InvalidTopology(
                f"{where}: {known[0]} by keys of type {words_of(known[1])}, and {each.source} is grouped by "
                f"{words_of(found)}; group all its inputs by keys of one type"
            )
        known = known or (f"{each.source} is grouped", found)


def _key_of(where: str, source: StreamId, grouping: Grouping, schema: Schema) -> Any:
    """Return the type of the key of a grouping: NoneType with ``global_``; None where it is not known."""
    if isinstance(grouping, Global):
        return type(None)
    if not isinstance(grouping, Fields):
        raise InvalidTopology(
            f"{where} has state for each key, and .{grouping.name}() on {source} does not bring equal keys to one task"
            f"; use .fields(...), or .global_() for a single state"
        )
    parts = key_annotations(schema, grouping)
    if len(grouping.names) <= 1:
        return parts[0] if parts else None
    return _tuple_of(parts) if len(parts) == len(grouping.names) else tuple


def _tuple_of(parts: Iterable[Any]) -> Any:
    return GenericAlias(tuple, tuple(parts))


NUMBERS = (bool, int, float)
"""Types of keys that are equal across types."""


def _differ(one: Any, other: Any) -> bool:
    """Return True if no key of one type is one of the other, as far as classes tell."""
    one, other = single_class(one), single_class(other)
    if one is None or other is None:
        return False
    if one in NUMBERS and other in NUMBERS:
        return False
    return not (issubclass(one, other) or issubclass(other, one))


def key_reader(subscription: Subscription[Any]) -> Callable[[Any], Any]:
    """Return a function that reads the key from a value of this input: of several fields a tuple, None with
    ``global_``."""
    return key_by(subscription.grouping) or whole


def key_fields(subscription: Subscription[Any]) -> FieldNames:
    """Return the fields of a value of this input that make its key; none for a function and for the whole value."""
    return subscription.grouping.names if isinstance(subscription.grouping, Fields) else ()


def key_by(grouping: Grouping) -> Callable[[Any], Any] | None:
    """Return the function that reads the key by a grouping; None if the value is its own key."""
    return grouping.key if isinstance(grouping, Fields) else _nothing


def whole(value: Any) -> Any:
    """Return the value, which is its own key."""
    return value


def _nothing(value: Any) -> None:
    return None
