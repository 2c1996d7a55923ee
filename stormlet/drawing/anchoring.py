"""The source code of a component: its emits, whether they are tied to a tree, and whether inputs are ever settled.

A ``Spout`` ties what it emits to a new tree by ``message_id=`` (law L10), a ``Bolt`` to those of its inputs by
``anchors=`` (law L8). The code is read, never run. What cannot be seen counts as tied: a class without
source, a collector that is handed to other code, keywords that are spread out of a dict.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from textwrap import dedent
from typing import Any, TypeAlias, cast

import msgspec

from stormlet.model.components import DEFAULT_STREAM, Bolt, BoltBase
from stormlet.model.description import BoltSpec, SpoutSpec
from stormlet.model.logic import component_class

EMITS = frozenset({"emit", "emit_threadsafe"})
SETTLES = frozenset({"ack", "fail", "ack_threadsafe", "fail_threadsafe"})
WITH_COLLECTOR = frozenset({"open", "next_tuple", "execute", "execute_batch", "tick", "flush", "finish"})
"""The methods whose last parameter is the collector."""
EMITTING = WITH_COLLECTOR - {"open"} | {"on_timer", "end_epoch"}
"""Those that are there to emit by it."""
VALUES = (
    ast.BinOp,
    ast.Compare,
    ast.Constant,
    ast.Dict,
    ast.DictComp,
    ast.JoinedStr,
    ast.List,
    ast.ListComp,
    ast.Set,
    ast.SetComp,
    ast.Tuple,
)
"""Expressions that give a value, which cannot be awaited, as everybody sees."""


class Emit(msgspec.Struct, frozen=True):
    """One call of ``emit`` in the code of a component."""

    method: str
    stream: str | None
    """The stream's name; None where it is computed."""
    keywords: Mapping[str, ast.expr]

    def reaches(self, stream: str) -> bool:
        """True if the call may emit to this stream."""
        return self.stream in (stream, None)

    def ties(self, keyword: str) -> bool:
        """True if the call may tie its tuples to a tree by this keyword."""
        return keyword in self.keywords and not _is_nothing(self.keywords[keyword])


class Code(msgspec.Struct, frozen=True):
    """The emits, acks and returns in the methods of a component class."""

    emits: tuple[Emit, ...]
    settles: bool
    """True if an input is acked or failed anywhere."""
    returns: tuple[str, ...]
    """The methods that are to emit by the collector, and are seen to return a value."""

    def emits_to(self, stream: str) -> list[Emit]:
        """The calls that may emit to this stream."""
        return [each for each in self.emits if each.reaches(stream)]


def tracks(spout: SpoutSpec, stream: str) -> bool:
    """True if the spout may emit tracked messages to the stream (law L10)."""
    return not is_untied(component_class(spout.source), stream, "message_id")


def anchors(bolt: BoltSpec, stream: str) -> bool:
    """True if the bolt's emits to the stream may be anchored (laws L8, B1)."""
    cls = component_class(bolt.logic)
    return not (anchors_itself(cls) and is_untied(cls, stream, "anchors"))


def anchors_itself(cls: type[Any] | None) -> bool:
    """True for a class of bolts that anchors and acks in its own code (law B2)."""
    return cls is not None and issubclass(cls, Bolt)


def is_untied(component: type[Any] | None, stream: str, keyword: str) -> bool:
    """True if the code shows that nothing it emits to the stream is tied to a tree by this keyword."""
    code = None if component is None else code_of(component)
    emits = [] if code is None else code.emits_to(stream)
    return bool(emits) and not any(each.ties(keyword) for each in emits)


def code_in(component: SpoutSpec | BoltSpec) -> Code | None:
    """The code of a component's class; None if it has no class, or a part of it cannot be seen."""
    cls = component_class(component.source if isinstance(component, SpoutSpec) else component.logic)
    return None if cls is None else code_of(cls)


def code_of(component: type[Any]) -> Code | None:
    """The code of the class and its bases; None if a part of it cannot be seen."""
    return _read(cast("Hashable", component))


@lru_cache(maxsize=256)
def _read(component: Any) -> Code | None:
    methods: list[_Method] = []
    for cls in component.__mro__:
        if _is_own(cls):
            seen = _methods(cls)
            if seen is None:
                return None
            methods.extend(seen)
    calls = [(method.name, call) for method in methods for call in _calls(method)]
    if any(keyword.arg is None for _, call in calls for keyword in call.keywords):
        return None
    emits = tuple(_emit(name, call) for name, call in calls if _verb(call) in EMITS)
    returns = [method.name for method in methods if method.name in EMITTING and _gives_values(method)]
    settles = any(_verb(call) in SETTLES for _, call in calls)
    return Code(emits, settles, tuple(dict.fromkeys(returns)))


_Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def _is_own(cls: type) -> bool:
    """True if it is the user's: neither the interface it derives from nor Python's."""
    return cls.__module__ not in (BoltBase.__module__, "builtins", "typing", "abc")


def _methods(cls: type) -> list[_Method] | None:
    """The methods of the class itself; None if one that gets the collector may do more than its code shows."""
    body = _parsed(cls)
    if body is None:
        return None
    methods = {node.name: node for node in body if isinstance(node, _Method)}
    given = WITH_COLLECTOR & cls.__dict__.keys()
    if given - methods.keys() or any(_is_opaque(methods[name]) for name in given):
        return None
    return list(methods.values())


def _parsed(cls: type) -> list[ast.stmt] | None:
    try:
        (node,) = ast.parse(dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    return node.body if isinstance(node, ast.ClassDef) else None


def _is_opaque(method: _Method) -> bool:
    """True if it is wrapped, or hands the collector to other code that may then emit and settle."""
    names = [*method.args.posonlyargs, *method.args.args]
    if not names or [
        each for each in method.decorator_list if ast.unparse(each).rpartition(".")[2] != "override"
    ]:
        return True
    calls = [node for node in ast.walk(method) if isinstance(node, ast.Call)]
    called_on = {id(call.func.value) for call in calls if isinstance(call.func, ast.Attribute)}
    return any(
        isinstance(node, ast.Name) and node.id == names[-1].arg and id(node) not in called_on
        for node in ast.walk(method)
    )


def _calls(method: _Method) -> list[ast.Call]:
    """The calls of a collector's verbs, whatever they are called on."""
    return [
        node for node in ast.walk(method) if isinstance(node, ast.Call) and _verb(node) in EMITS | SETTLES
    ]


def _gives_values(method: _Method) -> bool:
    return any(isinstance(each.value, VALUES) and not _is_none(each.value) for each in _returns(method))


def _returns(block: ast.AST) -> Iterator[ast.Return]:
    """The statements that return from it, and not from a function inside."""
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, _Method | ast.ClassDef):
            yield from _returns(node)


def _verb(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _emit(method: str, call: ast.Call) -> Emit:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    return Emit(method, _stream(keywords.get("stream")), keywords)


def _stream(argument: ast.expr | None) -> str | None:
    if argument is None:
        return DEFAULT_STREAM
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def _is_nothing(argument: ast.expr) -> bool:
    """True if it is written as None, () or []."""
    empty = isinstance(argument, ast.Tuple | ast.List) and not argument.elts
    return empty or _is_none(argument)


def _is_none(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and expression.value is None
