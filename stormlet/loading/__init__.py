"""Loading of the topology that the command line's TARGET names.

::

    topology.py             the only topology in a file
    topology.py:name        the topology that a file calls ``name``, or what its function ``name`` returns
    package.module:name     the same of a module that can be imported from here

Any fault of a target raises one :class:`~stormlet.errors.TargetError`, whose message names the alternatives; an
exception of the user's own code is its ``__cause__``. ``code`` runs the file or module; ``arguments`` calls a function
that returns the topology.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import FunctionType, ModuleType
from typing import ForwardRef

from stormlet.core.records import written_annotations
from stormlet.errors import TargetError
from stormlet.loading.arguments import Builder, build, kind_of
from stormlet.loading.code import listed, load_file, load_module, suggestion
from stormlet.topology import Topology


def load_topology(target: str, arguments: Mapping[str, str]) -> Topology:
    """Load the topology that a target names; ``arguments`` fill its function's parameters, as their
    annotations say.

    The directory of a file (of a module: the current one) goes to the front of ``sys.path`` and stays there,
    so that the files next to it can be imported, then and later. For a file the current directory goes to the end:
    there ``stormlet`` finds the same modules as ``python -m stormlet``, and hides none.

    Raises :class:`~stormlet.errors.TargetError`, or the :class:`~stormlet.errors.InvalidTopology` of the topology
    itself.
    """
    place, name = _split_target(target)
    module = load_file(place) if place.endswith(".py") else load_module(place)
    if name is None:
        name = _only_candidate(place, module)
    found = _lookup(place, module, name)
    return build(f"{place}:{name}", found, arguments)


def _split_target(target: str) -> tuple[str, str | None]:
    """``a.py`` -> (``a.py``, None); ``a.py:name`` -> (``a.py``, ``name``)."""
    if target.endswith(".py") or ":" not in target:
        return target, None
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise TargetError(
            f"{target!r} is incomplete: write topology.py, topology.py:name or package.module:name"
        )
    return place, name


def _only_candidate(place: str, module: ModuleType) -> str:
    """Return the name of the only topology in a module, or of the only function there annotated to return one."""
    names = _candidates(module)
    if len(names) == 1:
        return names[0]
    if names:
        raise TargetError(f"{place} has {len(names)} topologies; name one of them: " + _one_of(place, names))
    functions = _own_functions(module)
    hint = f" Or name the function that returns it: {_one_of(place, functions)}" if functions else ""
    raise TargetError(
        f"{place} has no topology: give it a Topology, or a function annotated '-> Topology', at its top level."
        + hint
    )


def _one_of(place: str, names: Collection[str]) -> str:
    return listed([f"{place}:{name}" for name in names])


def _candidates(module: ModuleType) -> list[str]:
    """Every topology's first public name, and the functions annotated to return one."""
    names = {id(thing): name for name, thing in reversed(_public(module)) if isinstance(thing, Topology)}
    functions = (name for name in _own_functions(module) if _returns_topology(getattr(module, name)))
    return [*reversed(names.values()), *functions]


def _public(module: ModuleType) -> list[tuple[str, object]]:
    return [(name, thing) for name, thing in vars(module).items() if not name.startswith("_")]


def _own_functions(module: ModuleType) -> list[str]:
    """Return the functions that a module defines and does not only import."""
    return [
        name
        for name, thing in _public(module)
        if isinstance(thing, FunctionType) and thing.__module__ == module.__name__
    ]


def _returns_topology(function: FunctionType) -> bool:
    annotation = written_annotations(function).get("return")
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):  # by its name alone, as evaluating it may fail
        return annotation.rpartition(".")[2] == Topology.__name__
    return isinstance(annotation, type) and issubclass(annotation, Topology)


def _lookup(place: str, module: ModuleType, name: str) -> Topology | Builder:
    """Return the topology or the function of that name."""
    found: object = vars(module).get(name)
    if isinstance(found, Topology):
        return found
    if callable(found) and not isinstance(found, type):
        return found
    if name in vars(module):
        wrong = f"{place}:{name} is {kind_of(found)}, neither a Topology nor a function that returns one"
    else:
        wrong = f"{place} has no {name!r}"
    known = _candidates(module) or _own_functions(module)
    raise TargetError(wrong + suggestion(name, known))
