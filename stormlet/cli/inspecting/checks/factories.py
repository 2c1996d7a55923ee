"""Bolts that are written as something else than they are taken for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType

from stormlet.cli.inspecting.anchoring import code_of
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.model.components import BoltBase, Spout
from stormlet.model.description import Description, SpoutSpec
from stormlet.model.logic import LogicKind, component_class


def mistaken_factories(description: Description) -> Iterator[Finding]:
    """Functions whose parameters all have defaults, and whose code names a class of bolts: they were meant to make
    one, but a function with a parameter is called with values."""
    for bolt in description.bolts.values():
        if bolt.kind is not LogicKind.FUNCTION or not isinstance(bolt.logic, FunctionType):
            continue
        made = _class_in(bolt.logic)
        if made is not None and _needs_nothing(bolt.logic):
            yield Finding(
                "mistaken factory",
                bolt.id,
                f"bolt {bolt.id!r} is a function with a parameter, so it is called with values, but it seems to make a "
                f"{made}: the first value would crash the topology",
                f"bind what it needs with functools.partial({made}, ...), as a factory takes no parameters",
            )


def _needs_nothing(function: FunctionType) -> bool:
    """True if each parameter has a default."""
    given = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    return all(each.default is not empty or each.kind is each.VAR_POSITIONAL for each in given)


def _class_in(function: FunctionType) -> str | None:
    """The first class of bolts or spouts that its code or its defaults name."""
    variables = inspect.getclosurevars(function)
    named = [*variables.nonlocals.values(), *variables.globals.values(), *(function.__defaults__ or ())]
    modules = [each for each in named if isinstance(each, ModuleType)]
    members = [getattr(module, name, None) for module in modules for name in function.__code__.co_names]
    classes = (each for each in (*named, *members) if isinstance(each, type))
    return next((each.__name__ for each in classes if issubclass(each, BoltBase | Spout)), None)


def dropped_results(description: Description) -> Iterator[Finding]:
    """Values that a method returns which emits by its collector: they go nowhere, and are refused (law B1)."""
    for component in description.components.values():
        logic = component.source if isinstance(component, SpoutSpec) else component.logic
        cls = component_class(logic)
        code = None if cls is None else code_of(cls)
        for method in () if code is None else code.returns:
            yield Finding(
                "dropped result",
                component.id,
                f"{method} of {component.id!r} returns a value, which nothing takes: its call counts as failed",
                "emit it with out.emit(...), and return nothing",
            )
