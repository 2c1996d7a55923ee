"""The effective settings of a command: those of a TOML file, under ``STORMLET_*`` variables, under ``--set``."""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, cast

from stormlet.acceleration import VARIABLE as COMPILED
from stormlet.cli.parameters import read_settings
from stormlet.errors import InvalidConfiguration
from stormlet.model.configuration import OPTIONS, parse_setting
from stormlet.model.setting_layers import Layer, Layered, lay
from stormlet.model.storm_names import NAMES
from stormlet.report.log_fields import log_fields

logger = logging.getLogger(__name__)

PREFIX: Final = "STORMLET_"
VARIABLES: Final = {f"{PREFIX}{option.upper()}": option for option in OPTIONS}
"""Environment variable -> option."""
SERVICE_LINKS: Final = re.compile(
    rf"{PREFIX}(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)"
)
"""What Kubernetes sets in every pod for a service that is called stormlet."""


def effective_settings(
    config: Path | None, settings: Sequence[str], *, flags: Mapping[str, object] | None = None
) -> Layered:
    """What file, environment and command line say, in this order; ``flags`` are options with a parameter of
    their own, by ``--name``.

    Raises :class:`~stormlet.errors.InvalidConfiguration` naming file, variable or parameter.
    """
    command_line = [
        Layer("--set", read_settings(settings)),
        *(Layer(f"--{name.replace('_', '-')}", {name: value}) for name, value in (flags or {}).items()),
    ]
    return lay((*_of_file(config), *_of_environment(os.environ), *command_line))


def warn_of_ignored(settings: Layered, topology: str) -> None:
    """Log each of Storm's names that has no effect here, with its place and the reason."""
    for name, (origin, reason) in settings.ignored.items():
        logger.warning("%s: %s has no effect: %s", origin, name, reason, extra=log_fields(topology))


def _of_file(path: Path | None) -> Iterator[Layer]:
    if path is None:
        return
    try:
        with path.open("rb") as file:
            yield Layer(str(path), _options_of(tomllib.load(file), str(path)))
    except OSError as error:
        raise InvalidConfiguration(f"--config {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"--config {path} is no TOML: {error}") from None
    except RecursionError:
        raise InvalidConfiguration(f"--config {path} is nested too deeply to be options") from None


def _options_of(content: Mapping[str, object], path: str) -> dict[str, object]:
    options: dict[str, object] = {}
    for name, value in _flattened(content):
        if name in options:  # "a.b" in quotes, and a.b as a table
            raise InvalidConfiguration(f"{path}: {name} is given twice; give it once")
        options[name] = value
    return options


def _flattened(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """TOML reads a bare ``topology.acker.executors`` as three tables; they are one name of Storm's."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        table = None if name in NAMES or name in OPTIONS else _table(value)
        if table is None:
            yield name, _or_none(value)
        else:
            yield from _flattened(table, f"{name}.")


def _table(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else None


def _or_none(value: object) -> object:
    """TOML has no null."""
    return None if isinstance(value, str) and value.lower() in ("none", "null") else value


def _of_environment(environment: Mapping[str, str]) -> Iterator[Layer]:
    """A layer for each variable. One that is empty counts as not set, as no option may be empty, and many tools
    can only empty a variable."""
    for name, text in sorted(environment.items()):
        if name in VARIABLES and text.strip():
            yield Layer(name, dict([parse_setting(f"{VARIABLES[name]}={text}")]))
        elif name.startswith(PREFIX) and not _is_known(name):
            raise InvalidConfiguration(_unknown(name))


def _is_known(name: str) -> bool:
    return name in VARIABLES or name == COMPILED or SERVICE_LINKS.fullmatch(name) is not None


def _unknown(name: str) -> str:
    known = [each.removeprefix(PREFIX) for each in VARIABLES]
    near = [f"{PREFIX}{each}" for each in get_close_matches(name.removeprefix(PREFIX), known)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(VARIABLES)}"
    return f"the environment variable {name} sets no option; {hint}"
