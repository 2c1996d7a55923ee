"""Code that loses messages, seen in the source of components: what is written as something else than it is taken for,
inputs that nobody settles, and outputs of no tree."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType

from stormlet.cli.inspecting.checks.finding import Finding, upstream
from stormlet.drawing.anchoring import Code, anchors_itself, code_in
from stormlet.model.components import BoltBase, Spout
from stormlet.model.description import BoltSpec, Description
from stormlet.model.logic import LogicKind, component_class
from stormlet.model.signatures import signature_of
from stormlet.model.traits import bolt_traits


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
    given = signature_of(function).parameters.values()
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
        code = code_in(component)
        for method in () if code is None else code.returns:
            yield Finding(
                "dropped result",
                component.id,
                f"{method} of {component.id!r} returns a value, which nothing takes: its call counts as failed",
                "emit it with out.emit(...), and return nothing",
            )


def unacked_inputs(description: Description) -> Iterator[Finding]:
    """A ``Bolt`` must ack or fail what it gets (law B2)."""
    for bolt, code in _bolts_with_code(description):
        if not code.settles:
            yield Finding(
                "unsettled inputs",
                bolt.id,
                f"bolt {bolt.id!r} is a Bolt, and never calls out.ack or out.fail: none of its inputs is ever done",
                "call out.ack(tup), or derive from BasicBolt, which acks by itself",
            )


def unanchored_outputs(description: Description) -> Iterator[Finding]:
    """Emits without anchors, which leave the tree (law L8); ``anchors=()`` says that it is meant."""
    for bolt, code in _bolts_with_code(description):
        if any(each.method == "execute" and "anchors" not in each.keywords for each in code.emits):
            yield Finding(
                "unanchored output",
                bolt.id,
                f"bolt {bolt.id!r} is a Bolt, and emits in execute without anchors: what fails further down is not "
                "replayed",
                "pass anchors=tup, or derive from BasicBolt; anchors=() says that it is meant",
            )


def _bolts_with_code(description: Description) -> Iterator[tuple[BoltSpec, Code]]:
    for bolt in description.bolts.values():
        code = code_in(bolt) if anchors_itself(component_class(bolt.logic)) else None
        if code is not None:
            yield bolt, code


def unowned_outputs(description: Description) -> Iterator[Finding]:
    """Emits of ``finish`` and ``tick``, which nobody tracks (laws B5, C2): if a sink that lives by acks fails on them,
    nothing is replayed, and nobody learns of it unless the sink stops the topology."""
    for bolt in description.bolts.values():
        if bolt.on_error == "stop" or not bolt_traits(bolt.logic).needs_acks:
            continue
        for source in upstream(description, bolt):
            method = _unanchored_method(source) if isinstance(source, BoltSpec) else None
            if method is not None:
                yield Finding(
                    "unowned output",
                    bolt.id,
                    f"bolt {source.id!r} emits in {method}, what comes of that reaches bolt {bolt.id!r}, and belongs "
                    "to no message: if it cannot be written, it is lost, and the run goes on",
                    f"give bolt {bolt.id!r} on_error='stop', so that a write that fails crashes the topology",
                )
                break


def _unanchored_method(bolt: BoltSpec) -> str | None:
    """The method that is called without an input, and is seen to emit without anchors."""
    code = code_in(bolt)
    called = ["finish"] if bolt.tick is None else ["finish", "tick"]
    emits = () if code is None else code.emits
    return next((each.method for each in emits if each.method in called and not each.ties("anchors")), None)
