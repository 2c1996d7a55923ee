"""The parameters that several commands share, and settings: of a file, of the environment, and of ``--set``."""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast

import msgspec
from cyclopts import Parameter, Token

from stormlet.acceleration import VARIABLE as COMPILED
from stormlet.cli.running.page import TOKEN as UI_TOKEN
from stormlet.connect.address import CONNECTION_SETTINGS, SETTINGS, variable
from stormlet.core.shortened import cut
from stormlet.errors import InvalidConfiguration, StormletError, TargetError
from stormlet.loading import load_topology
from stormlet.model.configuration import OPTIONS, parse_setting
from stormlet.model.setting_layers import Layer, Layered, lay
from stormlet.model.storm_names import NAMES
from stormlet.report.failures import log_fields
from stormlet.topology import Topology

Target: TypeAlias = Annotated[
    str, Parameter(help="topology.py, topology.py:name or package.module:name", show_default=False)
]
"""The topology."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """The options of every command that takes a topology."""

    arguments: Annotated[
        tuple[str, ...],
        Parameter(
            name="--arg",
            metavar="NAME=VALUE",
            negative=(),
            show_default=False,
            help="Fill a parameter of the function that returns the topology. May be repeated.",
        ),
    ] = ()
    settings: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set",
            metavar="KEY=VALUE",
            negative=(),
            show_default=False,
            help="Override an option of the topology, by our name or Storm's. May be repeated.",
        ),
    ] = ()
    config: Annotated[
        Path | None, Parameter(help="A TOML file of options; STORMLET_* variables and --set override it.")
    ] = None

    def layered(self, **flags: object) -> Layered:
        """The settings, as :func:`effective_settings` has them."""
        return effective_settings(self.config, self.settings, flags=flags)

    def topology(self, target: str) -> Topology:
        """The topology that the target names; raises as :func:`~stormlet.loading.load_topology` does."""
        return load_topology(target, read_arguments(self.arguments))


DEFAULTS: Final = TargetOptions()

Engine: TypeAlias = Literal["process", "spark"]
"""The machinery that runs a topology: this process, or Spark."""

Flag: TypeAlias = Annotated[bool, Parameter(negative=(), show_default=False)]
"""An option that is off unless it is asked for."""


def _whole(kind: type, tokens: Sequence[Token]) -> int:
    text = tokens[0].value
    try:
        return int(text)  # cyclopts itself would round 1.7
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


Whole: TypeAlias = Annotated[int, Parameter(converter=_whole)]
"""A number without a fraction."""


def _file(kind: type, tokens: Sequence[Token]) -> Path:
    if not tokens[0].value:  # which would be the current directory
        raise ValueError("it is empty; give the path of a file, or leave the option out")
    return Path(tokens[0].value)


FilePath: TypeAlias = Annotated[Path, Parameter(converter=_file)]
"""The path of a file."""


def read_arguments(texts: Iterable[str]) -> dict[str, str]:
    """``NAME=VALUE`` each; raises :class:`~stormlet.errors.TargetError` for anything else, and for a name that
    is given twice."""
    return _once(map(_argument, texts), "--arg", TargetError)


def _argument(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise TargetError(f"--arg {cut(text)}: write --arg NAME=VALUE")
    return name, value


def read_settings(texts: Iterable[str]) -> dict[str, object]:
    """``KEY=VALUE`` each; raises :class:`~stormlet.errors.InvalidConfiguration` for anything else, and for a key
    that is given twice."""
    return _once(map(_setting, texts), "--set", InvalidConfiguration)


def _setting(text: str) -> tuple[str, object]:
    try:
        return parse_setting(text)
    except InvalidConfiguration as error:
        raise InvalidConfiguration(f"--set {error}") from None


T = TypeVar("T")


def _once(pairs: Iterable[tuple[str, T]], place: str, error: type[StormletError]) -> dict[str, T]:
    """The pairs as a mapping; raises this error, naming the place, for a name that is given twice."""
    values: dict[str, T] = {}
    for name, value in pairs:
        if name in values:
            raise error(f"{place} {cut(name)} is given twice; give it once")
        values[name] = value
    return values


logger = logging.getLogger(__name__)

PREFIX: Final = "STORMLET_"
VARIABLES: Final = {f"{PREFIX}{option.upper()}": option for option in OPTIONS}
"""Environment variable -> option."""
SERVICE_LINKS: Final = re.compile(
    rf"{PREFIX}(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)"
)
"""Variables that Kubernetes sets in every pod for a service that is called stormlet."""
ADDRESS: Final = re.compile(r"STORMLET_CONNECT_[A-Z0-9_]+_URL")
"""Variables with the address of a component (:mod:`stormlet.connect.address`)."""


def effective_settings(
    config: Path | None, settings: Sequence[str], *, flags: Mapping[str, object] | None = None
) -> Layered:
    """The settings of file, environment and command line, in this order; ``flags`` are options with a parameter
    of their own, by ``--name``.

    Raises :class:`~stormlet.errors.InvalidConfiguration` naming file, variable or parameter.
    """
    command_line = [
        Layer("--set", read_settings(settings)),
        *(Layer(f"--{name.replace('_', '-')}", {name: value}) for name, value in (flags or {}).items()),
    ]
    return lay((*_of_file(config), *_of_environment(os.environ), *command_line))


def warn_of_ignored(settings: Layered, topology: Topology) -> None:
    """Log what has no effect here, with the reason: names of Storm's, and addresses of other components."""
    for name, (origin, reason) in settings.ignored.items():
        logger.warning("%s: %s has no effect: %s", origin, name, reason, extra=log_fields(topology.name))
    if SETTINGS or any(map(ADDRESS.fullmatch, os.environ)):
        for words in misnamed_connections(topology.describe().components):
            logger.warning("%s", words, extra=log_fields(topology.name))


def misnamed_connections(components: Collection[str]) -> Iterator[str]:
    """The tables ``[connect.NAME]`` of the file that are of none of these components, and the variables that are almost
    named as one of them: others may be of other topologies."""
    ours = {_component_in(variable(each)): each for each in components}
    for name in sorted(filter(ADDRESS.fullmatch, os.environ)):
        said = _component_in(name)
        for close in get_close_matches(said, ours, n=1) if said not in ours else ():
            meant = ours[close]
            yield f"{name} has no effect: the topology has no such component; {meant!r} has {variable(meant)}"
    for name in sorted(SETTINGS.keys() - set(components)):
        near = [repr(each) for each in get_close_matches(name, components)]
        hint = f", but has {' and '.join(near)}" if near else ""
        yield f"[connect.{name}] has no effect: the topology has no component {name!r}{hint}"


def _component_in(name: str) -> str:
    """The component in the name of a variable with an address."""
    return name.removeprefix("STORMLET_CONNECT_").removesuffix("_URL")


def _of_file(path: Path | None) -> Iterator[Layer]:
    if path is None:
        return
    try:
        with path.open("rb") as file:
            given = tomllib.load(file)
        _take_connections(path, given)
        yield Layer(str(path), _once(_flattened(given), f"{path}:", InvalidConfiguration))
    except OSError as error:
        raise InvalidConfiguration(f"--config {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"--config {path} is no TOML: {error}") from None
    except RecursionError:
        raise InvalidConfiguration(f"--config {path} is nested too deeply to be options") from None


def _flattened(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Names and values. TOML reads a bare ``topology.acker.executors`` as three tables; it is one name of Storm's."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name not in NAMES and name not in OPTIONS:
            yield from _flattened(cast("Mapping[str, object]", value), f"{name}.")
        else:  # TOML has no null
            yield name, None if isinstance(value, str) and value.lower() in ("none", "null") else value


def _of_environment(environment: Mapping[str, str]) -> Iterator[Layer]:
    """A layer for each variable. One that is empty counts as not set, as no option may be empty, and many tools
    can only empty a variable."""
    for name, text in sorted(environment.items()):
        if name in VARIABLES and text.strip():
            yield Layer(name, dict([parse_setting(f"{VARIABLES[name]}={text}")]))
        elif name.startswith(PREFIX) and not _is_known(name):
            raise InvalidConfiguration(_unknown(name))


def _is_known(name: str) -> bool:
    return (
        name in VARIABLES
        or name in (COMPILED, UI_TOKEN)
        or any(each.fullmatch(name) for each in (SERVICE_LINKS, ADDRESS))
    )


def _unknown(name: str) -> str:
    known = [each.removeprefix(PREFIX) for each in VARIABLES]
    near = [f"{PREFIX}{each}" for each in get_close_matches(name.removeprefix(PREFIX), known)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(VARIABLES)}"
    return f"the environment variable {name} sets no option; {hint}"


def _take_connections(path: Path, given: dict[str, Any]) -> None:
    """Take out ``[connect.NAME]``, which is about sources and sinks, and no option of the topology."""
    try:
        connections = msgspec.convert(given.pop("connect", {}), dict[str, dict[str, str]])
    except msgspec.ValidationError:
        raise InvalidConfiguration(
            f"{path}: connect has a table of texts for each source or sink, such as [connect.orders]"
        ) from None
    for name, settings in connections.items():
        unknown = [each for each in settings if each not in CONNECTION_SETTINGS]
        if unknown:
            raise InvalidConfiguration(
                f"{path}: [connect.{name}] has {unknown[0]!r}, and there are only {', '.join(CONNECTION_SETTINGS)}"
            )
    SETTINGS.update(connections)
