"""The topology of a function, called with the arguments of the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import get_args

import msgspec

from stormlet.core.shortened import cut
from stormlet.errors import TargetError
from stormlet.loading.code import blaming, suggestion
from stormlet.model.signatures import signature_of
from stormlet.topology import Topology

Builder = Callable[..., object]

WANTED = re.compile(r"Expected `(.+)`, got `str`")
"""Message of msgspec for a text that is not a value of a type."""


def build(label: str, found: Topology | Builder, arguments: Mapping[str, str]) -> Topology:
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
    with blaming(label):
        topology = found(**values)
    if not isinstance(topology, Topology):
        raise TargetError(f"{label} returned {kind_of(topology)}, not a Topology")
    return topology


def _fill_parameters(label: str, function: Builder, arguments: Mapping[str, str]) -> dict[str, object]:
    """Return the function's arguments by name, each converted to the type of its annotation."""
    parameters = _parameters_of(label, function, bool(arguments))
    unknown = [name for name in arguments if name not in parameters]
    if unknown:
        raise TargetError(f"{label} has no parameter {unknown[0]!r}" + suggestion(unknown[0], parameters))
    missing = [name for name, one in parameters.items() if one.default is one.empty and name not in arguments]
    if missing:
        raise TargetError(f"{label} needs {_spelled(dict.fromkeys(missing, '…'))}")
    return {name: _convert(label, parameters[name], text) for name, text in arguments.items()}


def _parameters_of(label: str, function: Builder, evaluate: bool) -> dict[str, inspect.Parameter]:
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        signature = inspect.signature(function, eval_str=True) if evaluate else signature_of(function)
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


def kind_of(thing: object) -> str:
    """Return the type of an object in words."""
    return (
        f"the class {thing.__name__}"
        if isinstance(thing, type)
        else f"a value of type {type(thing).__name__}"
    )


def _spelled(arguments: Mapping[str, str]) -> str:
    return " ".join(f"--arg {name}={cut(text)}" for name, text in arguments.items())
