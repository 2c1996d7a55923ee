"""The parameters that several commands share, and the conversions that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter, Token

from stormlet.core.shortened import cut
from stormlet.errors import InvalidConfiguration, TargetError
from stormlet.model.configuration import parse_setting

Target: TypeAlias = Annotated[
    str, Parameter(help="topology.py, topology.py:name or package.module:name", show_default=False)
]
"""Which topology."""

Arguments: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--arg",
        metavar="NAME=VALUE",
        negative=(),
        show_default=False,
        help="Fill a parameter of the function that returns the topology. May be repeated.",
    ),
]
"""For a function that builds the topology."""

Settings: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="KEY=VALUE",
        negative=(),
        show_default=False,
        help="Override an option of the topology, by our name or Storm's. May be repeated.",
    ),
]
"""Options, on the command line."""

ConfigFile: TypeAlias = Annotated[
    Path | None,
    Parameter(name="--config", help="A TOML file of options; STORMLET_* variables and --set override it."),
]
"""Options, in a file."""

Flag: TypeAlias = Annotated[bool, Parameter(negative=(), show_default=False)]
"""What is off unless it is asked for."""


def _whole(kind: type, tokens: Sequence[Token]) -> int:
    text = tokens[0].value
    try:
        return int(text)  # cyclopts itself would round 1.7
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


Whole: TypeAlias = Annotated[int, Parameter(converter=_whole)]
"""A number without a fraction."""


def read_arguments(texts: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` each; raises :class:`~stormlet.errors.TargetError` for anything else, and for a name that
    is given twice."""
    arguments: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise TargetError(f"--arg {cut(text)}: write --arg NAME=VALUE")
        if name in arguments:
            raise TargetError(f"--arg {cut(name)} is given twice; give it once")
        arguments[name] = value
    return arguments


def read_settings(texts: Sequence[str]) -> dict[str, object]:
    """``KEY=VALUE`` each; raises :class:`~stormlet.errors.InvalidConfiguration` for anything else, and for a key
    that is given twice."""
    settings: dict[str, object] = {}
    for text in texts:
        key, value = _parse(text)
        if key in settings:
            raise InvalidConfiguration(f"--set {key} is given twice; give it once")
        settings[key] = value
    return settings


def _parse(text: str) -> tuple[str, object]:
    try:
        return parse_setting(text)
    except InvalidConfiguration as error:
        raise InvalidConfiguration(f"--set {error}") from None
