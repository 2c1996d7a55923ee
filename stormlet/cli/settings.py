"""The effective settings of a command: those of a TOML file, under ``STORMLET_*`` variables, under ``--set``."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from stormlet.cli.parameters import read_settings
from stormlet.core.configuration import OPTIONS, parse_setting
from stormlet.core.layers import Layer, Layered, lay
from stormlet.errors import InvalidConfiguration

PREFIX = "STORMLET_"
VARIABLES = {f"{PREFIX}{option.upper()}": option for option in OPTIONS}
"""Environment variable -> option."""


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


def _of_file(path: Path | None) -> Iterator[Layer]:
    if path is None:
        return
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise InvalidConfiguration(f"--config {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"--config {path} is no TOML: {error}") from None
    yield Layer(str(path), dict(_flattened(content)))


def _flattened(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """TOML reads a bare ``topology.acker.executors`` as three tables; they are one name of Storm's."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", None if value in ("none", "null") else value


def _of_environment(environment: Mapping[str, str]) -> Iterator[Layer]:
    for name, text in sorted(environment.items()):
        if name.startswith(PREFIX):
            option = VARIABLES.get(name)
            if option is None:
                raise InvalidConfiguration(_unknown(name))
            yield Layer(name, dict([parse_setting(f"{option}={text}")]))


def _unknown(name: str) -> str:
    near = get_close_matches(name, VARIABLES)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(VARIABLES)}"
    return f"the environment variable {name} sets no option; {hint}"
