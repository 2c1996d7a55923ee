"""Loading of the topology that the command line's TARGET names.

::

    topology.py             the only topology in a file
    topology.py:name        the topology that a file calls ``name``, or what its function ``name`` returns
    package.module:name     the same of a module that can be imported from here

Any fault of a target raises one :class:`~stormlet.errors.TargetError`, whose message names the alternatives; an
exception of the user's own code is its ``__cause__``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePath
from types import FunctionType, ModuleType
from typing import get_args

import msgspec

from stormlet.core.shortened import cut, printable
from stormlet.errors import StormletError, TargetError
from stormlet.topology import Topology

Builder = Callable[..., object]

MOST_NAMES = 10
"""Most names that a message lists."""
WANTED = re.compile(r"Expected `(.+)`, got `str`")
"""Message of msgspec for a text that is not a value of a type."""


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
    module = _load_file(place) if place.endswith(".py") else _load_module(place)
    if name is None:
        name = _only_candidate(place, module)
    found = _lookup(place, module, name)
    return _build(f"{place}:{name}", found, arguments)


# --- the parts of a target ---


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


# --- loading the code ---


def _load_file(place: str) -> ModuleType:
    """Run a Python file as a module of its own."""
    path = _readable_file(place)
    sys.path.insert(0, str(path.parent))
    with suppress(FileNotFoundError):  # the current directory was removed
        sys.path.append(str(Path.cwd()))
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _blaming(f"{place} cannot be loaded"):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _readable_file(place: str) -> Path:
    with _reading(place):
        path = Path(place).resolve()
        if path.is_file():
            path.open("rb").close()
            return path
        raise TargetError(_no_file(place, path))


@contextmanager
def _reading(place: str) -> Generator[None]:
    """Turn an error of the file system into a TargetError."""
    try:
        yield
    except OSError as error:
        raise TargetError(f"{place} cannot be read: {error.strerror}") from None
    except RuntimeError as error:  # a loop of symbolic links, until Python 3.13
        raise TargetError(f"{place} cannot be read: {error}") from None


def _module_name(path: Path) -> str:
    """The file's own name, so that its classes find their module again, unless that would hide another
    module."""
    stem = path.stem.replace(".", "_")
    loaded = sys.modules.get(stem)
    taken = loaded is not None and getattr(loaded, "__file__", None) != str(path)
    return f"topology_file_{stem}" if taken or stem in sys.stdlib_module_names else stem


def _load_module(place: str) -> ModuleType:
    """Import a module by its dotted name."""
    with _reading(place):
        if not all(part.isidentifier() for part in place.split(".")) or _is_no_module(Path(place)):
            raise TargetError(_no_module(place))
        sys.path.insert(0, str(Path.cwd()))
    with _blaming(f"{place} cannot be loaded"):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{place}.".startswith(f"{error.name}."):
                raise  # a module that the user's module wants
    raise TargetError(
        f"there is no module {place!r} to import from {Path.cwd()}; for a file, write its path: …/name.py"
    )


def _is_no_module(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and not (path / "__init__.py").is_file())


@contextmanager
def _blaming(what: str) -> Generator[None]:
    """Turn an exception of the user's code into a TargetError; stormlet's own already name the way out."""
    try:
        yield
    except (StormletError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise TargetError(f"{what}: {_in_words(error)}{_way_out(error)}") from error


def _way_out(error: BaseException) -> str:
    if isinstance(error, ImportError) and "no known parent package" in str(error):
        return "; a file alone is in no package: write package.module:name, from the directory that has the package"
    return ""


# --- finding the topology ---


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
    return _listed([f"{place}:{name}" for name in names])


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
    annotation = function.__annotations__.get("return")
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
        wrong = f"{place}:{name} is {_kind_of(found)}, neither a Topology nor a function that returns one"
    else:
        wrong = f"{place} has no {name!r}"
    known = _candidates(module) or _own_functions(module)
    raise TargetError(wrong + _suggestion(name, known))


def _kind_of(thing: object) -> str:
    return (
        f"the class {thing.__name__}"
        if isinstance(thing, type)
        else f"a value of type {type(thing).__name__}"
    )


# --- calling a function for it ---


def _build(label: str, found: Topology | Builder, arguments: Mapping[str, str]) -> Topology:
    """Return the topology itself, or the one that its function returns for these arguments."""
    if isinstance(found, Topology):
        if arguments:
            raise TargetError(
                f"{label} is a topology, not a function, and takes no --arg: {_spelled(arguments)}"
            )
        return found
    if inspect.iscoroutinefunction(found):
        raise TargetError(f"{label} is an async function; a topology is built by a plain one")
    values = _fill_parameters(label, found, arguments)
    with _blaming(label):
        topology = found(**values)
    if not isinstance(topology, Topology):
        raise TargetError(f"{label} returned {_kind_of(topology)}, not a Topology")
    return topology


def _fill_parameters(label: str, function: Builder, arguments: Mapping[str, str]) -> dict[str, object]:
    """Return the function's arguments by name, each converted to the type of its annotation."""
    parameters = _parameters_of(label, function, bool(arguments))
    unknown = [name for name in arguments if name not in parameters]
    if unknown:
        raise TargetError(f"{label} has no parameter {unknown[0]!r}" + _suggestion(unknown[0], parameters))
    missing = [name for name, one in parameters.items() if one.default is one.empty and name not in arguments]
    if missing:
        raise TargetError(f"{label} needs {_spelled(dict.fromkeys(missing, '…'))}")
    return {name: _convert(label, parameters[name], text) for name, text in arguments.items()}


def _parameters_of(label: str, function: Builder, evaluate: bool) -> dict[str, inspect.Parameter]:
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        signature = inspect.signature(function, eval_str=evaluate)
    except (NameError, TypeError, ValueError) as error:
        raise TargetError(f"the parameters of {label} cannot be read: {error}") from None
    return {name: one for name, one in signature.parameters.items() if one.kind in by_name}


def _convert(label: str, parameter: inspect.Parameter, text: str) -> object:
    if parameter.annotation is parameter.empty:
        return text
    try:
        return msgspec.convert(text, parameter.annotation, strict=False, dec_hook=_path_from)
    except (msgspec.ValidationError, UnicodeEncodeError, TypeError, NotImplementedError) as error:
        raise TargetError(
            f"--arg {parameter.name}={cut(text)} does not fit {label}({parameter}): "
            f"{_misfit(parameter.annotation, text, str(error))}"
        ) from None


def _misfit(annotation: object, text: str, error: str) -> str:
    """Return the reason why a text is not a value of this type, from the JSON types that msgspec names."""
    if bool in (annotation, *get_args(annotation)):
        return "write true or false"
    wanted = WANTED.match(error)
    if wanted is None:
        return error
    kinds = wanted[1].split(" | ")
    if {"array", "object"} & {*kinds}:
        return "only single values can be given on a command line; have the function take text, and read that"
    return f"{cut(text)} is {'neither' if len(kinds) > 1 else 'no'} {' nor '.join(kinds)}"


def _path_from(wanted: type, text: object) -> object:
    """Convert text to a path, the one kind of value that msgspec does not know by itself."""
    if issubclass(wanted, PurePath):
        return wanted(str(text))
    raise NotImplementedError(f"{wanted.__name__} cannot be given on a command line")


# --- words ---


def _in_words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "its str() failed"
    return printable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _spelled(arguments: Mapping[str, str]) -> str:
    return " ".join(f"--arg {name}={cut(text)}" for name, text in arguments.items())


def _suggestion(wrong: str, known: Collection[str]) -> str:
    """Return the nearest name in words, or the first of all names."""
    near = get_close_matches(wrong, known)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; there are: {_listed(known)}" if known else ""


def _listed(names: Collection[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(islice(names, MOST_NAMES))}{more}"


def _no_file(place: str, path: Path) -> str:
    if path.is_dir():
        return _no_module(place)
    if not path.parent.is_dir():
        return f"there is no directory {str(path.parent)!r}, where {place} should be"
    return f"there is no file {place!r}" + _suggestion(path.name, _python_files(path.parent))


def _no_module(place: str) -> str:
    path = Path(place)
    if path.is_dir():
        return f"{place!r} is a directory; name a Python file in it" + _suggestion("", _python_files(path))
    if path.exists() or path.with_name(f"{path.name}.py").exists():
        return f"{place!r} is no Python file: its name must end in .py"
    return f"{place!r} is neither a Python file (…/name.py) nor the name of a module (package.module:name)"


def _python_files(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.glob("*.py") if file.is_file())
