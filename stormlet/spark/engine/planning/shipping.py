"""Classes that are not found on other machines.

Functions travel by value: a lambda, a closure or a function of the program itself brings its code and what that uses.
Classes travel by name, as each value says of which class it is. So a class of ``__main__``, which is the program or the
notebook, and a class that is made in a function are found on no other machine. Sent by value, a msgspec.Struct would
lose its fields without a word.

Here the classes are found that a topology needs, as far as can be seen without running it: those that components are
made of, that streams declare, and that functions refer to which travel by value.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, cast, get_args, get_origin

from stormlet.core.groupings import Custom, Fields, Grouping, PartialKey
from stormlet.core.records import written_annotations
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.spark.source.dataframe_spout import DataFrameSpout

_PLAIN: Final = frozenset({int, float, str, bytes, bool, type(None)})
"""Types of many values, none of which leads to a class."""


def unfound(description: Description) -> Iterator[str]:
    """Iterate over the reasons why components cannot run on other machines: a sentence for each."""
    for component in description.components.values():
        kind = "bolt" if isinstance(component, BoltSpec) else "spout"
        names = sorted({_name(each) for each in _classes(_roots(component)) if not _travels_by_name(each)})
        if names:
            yield f"{kind} {component.id!r} needs {_listed(names)} at the top level of a file that you import"


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the class {names[0]}, which is not found on other machines; put it"
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"the classes {listed}, which are not found on other machines; put them"


def _roots(component: SpoutSpec | BoltSpec) -> Iterator[object]:
    """Iterate over what the user has given for a component."""
    for output in component.outputs.values():
        yield output.schema.declared
    if isinstance(component, SpoutSpec):
        yield from _given(component.source)
        return
    yield from _given(component.logic)
    for each in component.inputs:
        yield from _of_grouping(each.grouping)


def _of_grouping(grouping: Grouping) -> Iterable[object]:
    if isinstance(grouping, Custom):
        return _given(grouping.grouping)
    return (grouping.key,) if isinstance(grouping, Fields | PartialKey) else ()


def _given(thing: object) -> Iterable[object]:
    """An object that makes components, or that chooses tasks, and what it keeps."""
    if isinstance(thing, DataFrameSpout):  # Spark reads it, and its stream declares what comes of it
        return ()
    return (thing, *_kept_by(thing))


def _kept_by(thing: object) -> Iterable[object]:
    if isinstance(thing, type | FunctionType | partial):
        return ()
    kept: Mapping[str, object] = getattr(thing, "__dict__", {})
    return kept.values()


def _classes(roots: Iterable[object]) -> Iterator[type]:
    """Iterate over the classes that these lead to."""
    left = [*roots]
    seen: dict[int, object] = {}  # the objects as well: others would get the number of one that is gone
    while left:
        each = left.pop()
        if type(each) in _PLAIN or id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, type):
            yield each
        else:
            left += _parts(each)


def _parts(thing: object) -> Iterable[object]:
    """The objects that an object refers to, as far as they travel along."""
    kind: type[object] = type(thing)
    if isinstance(thing, FunctionType):
        return () if _travels_by_name(thing) else _of_function(thing)
    if isinstance(thing, MethodType):
        return (thing.__self__, thing.__func__)
    if isinstance(thing, partial):
        bound = cast("partial[object]", thing)
        return (bound.func, *bound.args, *bound.keywords.values())
    if isinstance(thing, dict):
        entries = cast("Mapping[object, object]", thing)
        return (kind, *entries.keys(), *entries.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return (kind, *cast("Iterable[object]", thing))
    return (kind, get_origin(thing), *get_args(thing))


def _of_function(function: FunctionType) -> Iterator[object]:
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from written_annotations(function).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing has been assigned yet
            continue
    for name in _globals_in(function.__code__):
        yield function.__globals__.get(name)


def _globals_in(code: CodeType) -> Iterator[str]:
    """Iterate over the names of globals that code reads, that of functions in it included."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield cast("str", instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_in(constant)


def _travels_by_name(thing: type[Any] | FunctionType) -> bool:
    return thing.__module__ != "__main__" and "<" not in thing.__qualname__  # <locals>, <lambda>


def _name(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
