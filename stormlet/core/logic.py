"""What a user handed in as a spout's source or a bolt's logic, told apart once, when the topology is
built."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterable
from enum import Enum
from functools import partial
from typing import Any, cast, get_args, get_origin, get_type_hints

from stormlet.core.components import BoltBase, Spout
from stormlet.core.schema import Schema, schema_from_annotation, schema_of
from stormlet.errors import InvalidTopology

OPAQUE = schema_of(None)


class SourceKind(Enum):
    """How a spout gets its tuples."""

    FED = "fed"
    """By ``running.emit`` alone."""
    FACTORY = "factory"
    """From a ``Spout`` class, or a function that makes one."""
    GENERATOR = "generator"
    """From a generator function, sync or async."""
    ITERABLE = "iterable"
    """From an iterable or an async iterable."""


class LogicKind(Enum):
    """What executes a bolt's inputs."""

    FACTORY = "factory"
    """A bolt class, or a function that makes an instance of one."""
    FUNCTION = "function"
    """A function of the value."""


def source_kind(component: str, source: object) -> SourceKind:
    """Raises :class:`InvalidTopology` for an instance of ``Spout`` (law S8) and for what is no source at
    all."""
    if source is None:
        return SourceKind.FED
    if isinstance(source, Spout):
        raise InvalidTopology(_instance("spout", component, cast("object", source)))
    if _is_generator_function(source):
        return SourceKind.GENERATOR
    if isinstance(source, type):
        if issubclass(source, Spout):
            return SourceKind.FACTORY
        raise InvalidTopology(
            f"spout {component!r}: class {source.__name__} does not derive from Spout; "
            f"derive it, or pass a generator function"
        )
    if isinstance(source, Iterable | AsyncIterable):
        return SourceKind.ITERABLE
    if callable(source) and positional_parameters(source) in (None, 0):
        return SourceKind.FACTORY
    raise InvalidTopology(
        f"spout {component!r}: {source!r} is no source; pass a Spout class or factory, a generator function, "
        f"an iterable, or nothing to feed it with running.emit"
    )


def logic_kind(component: str, logic: object) -> LogicKind:
    """Raises :class:`InvalidTopology` for an instance of a bolt class (law S8) and for what is not
    callable."""
    if isinstance(logic, BoltBase):
        raise InvalidTopology(_instance("bolt", component, cast("object", logic)))
    if isinstance(logic, type):
        if issubclass(logic, Spout):
            raise InvalidTopology(
                f"bolt {component!r}: {logic.__name__} is a Spout; add it with topology.spout(...)"
            )
        return LogicKind.FACTORY if issubclass(logic, BoltBase) else LogicKind.FUNCTION
    if not callable(logic):
        raise InvalidTopology(
            f"bolt {component!r}: {logic!r} is not callable; pass a function of the value, a bolt class or a factory"
        )
    if isinstance(logic, partial) and isinstance(cast("partial[object]", logic).func, type):
        return logic_kind(component, cast("partial[object]", logic).func)
    return (
        LogicKind.FACTORY
        if positional_parameters(cast("Callable[..., object]", logic)) == 0
        else LogicKind.FUNCTION
    )


def check_code(where: str, logic: object, executor: str) -> None:
    """Raises :class:`InvalidTopology` for an ``execute`` that yields, which would never run, and for
    asynchronous code that is to run in threads (law B9). ``logic`` is a function, or a bolt class or
    instance."""
    own = logic if isinstance(logic, type) else type(logic)
    is_bolt = issubclass(own, BoltBase)
    code = (
        [getattr(logic, name) for name in ("execute", "execute_batch") if hasattr(own, name)]
        if is_bolt
        else [logic]
    )
    for each in code:
        if is_bolt and (inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each)):
            raise InvalidTopology(
                f"{where}: {own.__name__}.{each.__name__} yields; emit with out.emit(...) instead"
            )
        if executor == "thread" and (inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)):
            raise InvalidTopology(
                f'{where} is asynchronous and cannot run with executor="thread"; use concurrency= on the loop instead'
            )


def positional_parameters(function: Callable[..., object]) -> int | None:
    """How many positional arguments the function takes; None where Python cannot tell, as for some
    builtins."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return sum(parameter.kind in kinds for parameter in parameters)


def takes_context(source: object) -> bool:
    """Whether a generator function asks for the task context, so that its tasks can share the work (law
    S8)."""
    return positional_parameters(cast("Callable[..., object]", source)) == 1


def inferred_schema(logic: object) -> Schema:
    """The schema that the annotations promise: of a function, what it returns or yields; of a class, its type
    arguments."""
    if isinstance(logic, partial):
        return inferred_schema(cast("partial[object]", logic).func)
    if isinstance(logic, type):
        return _schema_of_class(logic)
    try:
        annotation = get_type_hints(logic).get("return")
    except (NameError, TypeError):
        return OPAQUE
    if isinstance(annotation, type) and _is_component(annotation):
        return _schema_of_class(annotation)
    if get_origin(annotation) is not None and _is_component(get_origin(annotation)):
        return schema_from_annotation(get_args(annotation)[-1])
    return OPAQUE if annotation is None else schema_from_annotation(cast("object", annotation))


def _schema_of_class(cls: type) -> Schema:
    for each in cls.__mro__:
        for base in cast("tuple[Any, ...]", each.__dict__.get("__orig_bases__", ())):
            if _is_component(get_origin(base)):
                return schema_from_annotation(get_args(base)[-1])
    return OPAQUE


def _is_component(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, BoltBase | Spout)


def _is_generator_function(source: object) -> bool:
    function = cast("partial[object]", source).func if isinstance(source, partial) else source
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _instance(kind: str, component: str, instance: object) -> str:
    name = type(instance).__name__
    return (
        f"{kind} {component!r}: {name} object given, but each task needs an instance of its own; "
        f"pass the class {name} or a factory, such as lambda: {name}(...)"
    )
