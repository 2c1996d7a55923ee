"""Kinds of sources and of logic: objects that users pass for spouts and bolts are classified once, when the topology
is built."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterable
from enum import Enum
from functools import partial
from typing import Any, TypeVar, cast, get_args, get_origin

from stormlet.core.schema import Schema, schema_from_annotation, schema_of
from stormlet.errors import InvalidTopology
from stormlet.model.components import BasicBolt, BatchBolt, Bolt, BoltBase, Spout, overrides
from stormlet.model.signatures import can_be_called, positional_parameters, returned
from stormlet.model.state.committers import Committer
from stormlet.model.state.epoch_bolts import EpochBolt
from stormlet.model.state.keyed import KeyedBolt

OPAQUE = schema_of(None)


class SourceKind(Enum):
    """Origin of a spout's tuples."""

    FED = "fed"
    """By ``running.emit`` alone."""
    FACTORY = "factory"
    """From a ``Spout`` class, or a function that makes one."""
    GENERATOR = "generator"
    """From a generator function, sync or async."""
    ITERABLE = "iterable"
    """From an iterable or an async iterable."""


class LogicKind(Enum):
    """Executor of a bolt's inputs."""

    FACTORY = "factory"
    """A bolt class, or a function that makes an instance of one."""
    FUNCTION = "function"
    """A function of the value."""


def source_kind(component: str, source: object) -> SourceKind:
    """Return the kind of a source. Raise :class:`InvalidTopology` for an instance of ``Spout`` (law S8) and for an
    object that is not a source."""
    if source is None:
        return SourceKind.FED
    if isinstance(source, str | bytes):
        raise InvalidTopology(
            f"spout {component!r}: {source!r} would yield its characters one by one; pass a list, a generator "
            f"function, or an open file"
        )
    if isinstance(source, Spout):
        raise InvalidTopology(_instance("spout", component, cast("object", source)))
    if _is_generator_function(source):
        return _checked_generator(component, cast("Callable[..., object]", source))
    called = what_is_called(source)
    if isinstance(called, type):
        if issubclass(called, Spout):
            _check_factory("spout", component, source, called.__name__)
            return SourceKind.FACTORY
        raise InvalidTopology(
            f"spout {component!r}: class {called.__name__} does not derive from Spout; "
            f"derive it, or pass a generator function"
        )
    if isinstance(source, Iterable | AsyncIterable):
        return SourceKind.ITERABLE
    if callable(source) and can_be_called(source):
        return SourceKind.FACTORY
    raise InvalidTopology(
        f"spout {component!r}: {source!r} is no source; pass a Spout class or factory, a generator function, "
        f"an iterable, or nothing to feed it with running.emit"
    )


def logic_kind(component: str, logic: object, *, has_cell: bool = False) -> LogicKind:
    """Return the kind of a bolt's logic; ``has_cell`` is true for a function that takes a cell of its state as well.
    Raise :class:`InvalidTopology` for an instance of a bolt class (law S8) and for an object that is not callable."""
    if isinstance(logic, BoltBase):
        raise InvalidTopology(_instance("bolt", component, cast("object", logic)))
    if not callable(logic):
        raise InvalidTopology(
            f"bolt {component!r}: {logic!r} is not callable; pass a function of the value, a bolt class or a factory"
        )
    called = what_is_called(logic)
    if isinstance(called, type):
        if issubclass(called, Spout):
            raise InvalidTopology(
                f"bolt {component!r}: {called.__name__} is a Spout; add it with topology.spout(...)"
            )
        if issubclass(called, BoltBase):
            _check_factory("bolt", component, logic, called.__name__)
            return LogicKind.FACTORY
        return LogicKind.FUNCTION
    if has_cell:
        return LogicKind.FUNCTION
    if positional_parameters(logic) == 0:
        return LogicKind.FACTORY
    if not can_be_called(logic, None):
        raise InvalidTopology(
            f"bolt {component!r}: {logic!r} cannot be called with the value alone; "
            f"bind the rest with functools.partial"
        )
    made = component_class(logic)
    if made is not None:
        raise InvalidTopology(
            f"bolt {component!r}: {logic!r} has a parameter and is annotated to return {made.__name__}, but a factory "
            f"takes no parameters; bind what it needs with functools.partial({made.__name__}, ...)"
        )
    return LogicKind.FUNCTION


BOLT_CLASSES: tuple[type[Any], ...] = (Bolt, BasicBolt, BatchBolt, KeyedBolt, Committer, EpochBolt)
BOLT_METHODS = {
    "execute": "tup, out",
    "execute_batch": "tups, out",
    "commit": "epoch, rows",
    "end_epoch": "epoch, out",
    "on_timer": "at, out",
    "prepare": "context",
    "tick": "out",
    "flush": "out",
    "finish": "out",
    "cleanup": "",
}
"""The methods of bolts, and the arguments that each is called with."""
SPOUT_METHODS = {
    "open": "context, out",
    "next_tuple": "out",
    "ack": "message_id",
    "fail": "message_id, failure",
    "activate": "",
    "deactivate": "",
    "drain": "",
    "close": "",
}
"""The methods of spouts, likewise."""


def check_code(where: str, logic: object, executor: str) -> None:
    """Check the code of a spout or bolt as far as possible before it runs; raise :class:`InvalidTopology`."""
    called = what_is_called(logic)
    if isinstance(called, type) and _derives(called, BoltBase):
        check_bolt(where, called, executor)
    elif isinstance(called, type) and _derives(called, Spout):
        check_spout(where, called)
    else:
        _check_threads(where, logic, executor)


def check_bolt(where: str, bolt: object, executor: str) -> None:
    """Check a bolt class, or an instance of one. Raise :class:`InvalidTopology` for one without ``execute``,
    for methods that cannot be called or that yield, which would never run, and for asynchronous code that is to run
    in threads (law B9)."""
    own: Any = _class_of(bolt)
    needed = _needed_method(own)
    if getattr(own, needed, None) in [None, *(getattr(base, needed, None) for base in BOLT_CLASSES)]:
        raise InvalidTopology(f"{where}: {own.__name__} defines no {needed}")
    if needed != "execute" and hasattr(own, "execute"):
        base = "BatchBolt" if _derives(own, BatchBolt) else "Committer"
        raise InvalidTopology(f"{where}: {own.__name__} is a {base}; define {needed} instead of execute")
    for name, arguments in BOLT_METHODS.items():
        if hasattr(own, name):
            _check_method(where, own, name, arguments)
            _check_threads(where, getattr(own, name), executor)


def _needed_method(own: type[Any]) -> str:
    if _derives(own, BatchBolt):
        return "execute_batch"
    return "commit" if _derives(own, Committer) else "execute"


def check_spout(where: str, spout: object) -> None:
    """Check a spout class, or an instance of one. Raise :class:`InvalidTopology` for one without
    ``next_tuple`` and for methods that cannot be called or that yield, which would never run."""
    own = _class_of(spout)
    if not overrides(own, Spout, "next_tuple"):
        raise InvalidTopology(f"{where}: {own.__name__} defines no next_tuple")
    for name, arguments in SPOUT_METHODS.items():
        _check_method(where, own, name, arguments)


def _class_of(component: object) -> type[Any]:
    return cast("type[Any]", component) if isinstance(component, type) else type(component)


def _derives(cls: type[Any], base: type[Any]) -> bool:
    return issubclass(cls, base)


def _check_method(where: str, own: type[Any], name: str, arguments: str) -> None:
    method = getattr(own, name)
    given = [argument for argument in ("self", *arguments.split(", ")) if argument]
    if inspect.isfunction(inspect.getattr_static(own, name)) and not can_be_called(method, *given):
        raise InvalidTopology(
            f"{where}: {own.__name__}.{name} cannot be called as it will be; write def {name}({', '.join(given)})"
        )
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise InvalidTopology(f"{where}: {own.__name__}.{name} yields; emit with out.emit(...) instead")


def _check_threads(where: str, code: object, executor: str) -> None:
    if executor == "thread" and (inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code)):
        raise InvalidTopology(
            f'{where} is asynchronous and cannot run with executor="thread"; use concurrency= on the loop instead'
        )


def takes_context(source: object) -> bool:
    """Return True if a generator function asks for the task context, so that its tasks can share the work (law S8).
    Parameters with defaults do not count."""
    return not can_be_called(cast("Callable[..., object]", source))


def yields_to_all(source: object, kind: SourceKind) -> bool:
    """Return True if several tasks would each yield all the values of this source (law S8)."""
    return kind is SourceKind.ITERABLE or (kind is SourceKind.GENERATOR and not takes_context(source))


def _checked_generator(component: str, function: Callable[..., object]) -> SourceKind:
    if can_be_called(function) or can_be_called(function, None):
        return SourceKind.GENERATOR
    raise InvalidTopology(
        f"spout {component!r}: {function!r} wants more than the task context; bind the rest with functools.partial"
    )


def _check_factory(kind: str, component: str, factory: object, name: str) -> None:
    if not can_be_called(cast("Callable[..., object]", factory)):
        raise InvalidTopology(
            f"{kind} {component!r}: {name} needs arguments; bind them with functools.partial({name}, ...)"
        )


def inferred_schema(logic: object) -> Schema:
    """Return the schema by the annotations: by the result of a function, by the type arguments of a class, by the
    attribute ``outputs`` of a factory that is an object."""
    if _is_factory_object(logic):
        return schema_of(getattr(logic, "outputs", None), enforced=False)
    if isinstance(logic, partial):
        return inferred_schema(cast("partial[object]", logic).func)
    if isinstance(what_is_called(logic), type):
        return _schema_of_component(logic) if _is_component(what_is_called(logic)) else OPAQUE
    annotation = returned(logic)
    if _is_component(what_is_called(annotation)):
        return _schema_of_component(annotation)
    return OPAQUE if annotation is None else schema_from_annotation(annotation)


def component_class(logic: object) -> type[Any] | None:
    """Return the spout or bolt class that a component is made from: the class itself, that of a partial, or the return
    annotation of its factory; None where there is none."""
    called = what_is_called(logic)
    if not isinstance(called, type):
        called = what_is_called(returned(called))
    return cast("type[Any]", called) if _is_component(called) else None


def _is_factory_object(logic: object) -> bool:
    """Return True for an object that makes components: neither a class nor any kind of function."""
    called = what_is_called(logic)
    return callable(called) and not isinstance(called, type) and not inspect.isroutine(called)


def _schema_of_component(cls: object) -> Schema:
    produced = _produced_by(cls)
    return OPAQUE if isinstance(produced, TypeVar) else schema_from_annotation(produced)


def _produced_by(component: object) -> object:
    """Return the type of a component class's outputs: the last type argument of the interface that it derives from,
    followed through the type variables of the classes between."""
    cls = cast("Any", what_is_called(component))
    bases = cast("tuple[object, ...]", cls.__dict__.get("__orig_bases__", cls.__bases__))
    base = next((each for each in bases if _is_component(what_is_called(each))), None)
    produced = cls.__parameters__[-1] if base is None else _produced_by(base)
    given = zip(cls.__parameters__, get_args(component), strict=False)
    return next((argument for parameter, argument in given if parameter is produced), produced)


def _is_component(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, BoltBase | Spout)


def _is_generator_function(source: object) -> bool:
    return inspect.isgeneratorfunction(what_is_called(source)) or inspect.isasyncgenfunction(
        what_is_called(source)
    )


def not_at_once(function: object) -> str:
    """Return in words why a function does not give its result at once; empty for one that does."""
    called = what_is_called(function)
    if not inspect.isroutine(called):  # an object with a method of that name
        called = getattr(type(called), "__call__", called)  # noqa: B004 - it is not about being callable
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        return "is async"
    return "yields" if inspect.isgeneratorfunction(called) else ""


def what_is_called(function: object) -> object:
    """Return the callable below a partial, or below a class with type arguments."""
    called = cast("partial[object]", function).func if isinstance(function, partial) else function
    return get_origin(called) or called


def _instance(kind: str, component: str, instance: object) -> str:
    name = type(instance).__name__
    return (
        f"{kind} {component!r}: {name} object given, but each task needs an instance of its own; "
        f"pass the class {name}, or its arguments with it, as functools.partial({name}, ...)"
    )
