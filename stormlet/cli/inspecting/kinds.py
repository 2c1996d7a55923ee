"""What users handed in, in a few words: ``generator function read``, ``class Count(BasicBolt)``."""

from __future__ import annotations

import inspect
from typing import Any

from stormlet.model.components import BasicBolt, BatchBolt, Bolt, Spout
from stormlet.model.description import BoltSpec, SpoutSpec
from stormlet.model.logic import LogicKind, SourceKind, component_class, what_is_called

INTERFACES = (Spout, Bolt, BasicBolt, BatchBolt)


def kind_of(spec: SpoutSpec | BoltSpec) -> str:
    """What kind of source or logic a component has, and its name."""
    logic: Any = spec.source if isinstance(spec, SpoutSpec) else spec.logic
    match spec.kind:
        case SourceKind.FED:
            return "fed by running.emit"
        case SourceKind.ITERABLE:
            return f"iterable {type(logic).__name__}"
        case SourceKind.FACTORY | LogicKind.FACTORY:
            return _made(logic)
        case SourceKind.GENERATOR | LogicKind.FUNCTION:
            return f"{_function_kind(logic)} {_name(logic)}"


def _made(factory: object) -> str:
    cls = component_class(factory)
    interface = next((each.__name__ for each in INTERFACES if cls is not None and issubclass(cls, each)), "")
    if isinstance(what_is_called(factory), type):
        return f"class {_name(factory)}({interface})"
    return f"factory {_name(factory)}" + ("" if cls is None else f" of class {cls.__qualname__}({interface})")


def _function_kind(function: object) -> str:
    called = what_is_called(function)
    if inspect.isasyncgenfunction(called):
        return "async generator function"
    if inspect.isgeneratorfunction(called):
        return "generator function"
    return "async function" if inspect.iscoroutinefunction(called) else "function"


def _name(function: object) -> str:
    called = what_is_called(function)
    name: str = getattr(called, "__qualname__", type(called).__qualname__)
    return name.replace("<locals>.", "").replace("<lambda>", "lambda")
