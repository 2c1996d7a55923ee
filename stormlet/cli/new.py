"""The ``new`` command."""

from __future__ import annotations

import re
import shlex
import sys
from functools import partial
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from stormlet.cli.output import write_text
from stormlet.cli.templates import TEMPLATES
from stormlet.errors import TargetError

EXAMPLES = """\
stormlet new temperatures
stormlet new services/temperatures"""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
TAKEN = sys.stdlib_module_names | {"conftest", "msgspec", "pytest", "stormlet"}
"""Modules that the project, its test or Python itself imports."""


def new(name: Annotated[str, Parameter(show_default=False)], /) -> int:
    """Write a small topology with its test, to begin from.

    Both work as they are. Nothing that exists is overwritten.

    Parameters
    ----------
    name
        The directory to be made; its last part becomes the topology's name, and that of its files.
    """
    directory = Path(name)
    files = _files(directory.name)
    try:
        _check(name, directory)
        directory.mkdir(exist_ok=True)
        for file, text in files.items():
            with (directory / file).open("x", encoding="utf-8", newline="\n") as made:
                made.write(text)
    except OSError as error:
        raise TargetError(f"{error.filename or directory} cannot be written: {error.strerror}") from None
    write_text(f"{_next_steps(directory, *files)}\n")
    return 0


def _files(name: str) -> dict[str, str]:
    """The texts by file. The files go by the project, as pytest wants no two tests of one name."""
    filled = partial(_filled, name=name, module=_module(name))
    return {filled(file): filled(text) for file, text in TEMPLATES.items()}


def _filled(text: str, *, name: str, module: str) -> str:
    return text.replace("MODULE", module).replace("NAME", name)


def _module(name: str) -> str:
    """An identifier that hides no module."""
    identifier = name.replace("-", "_").lower()
    return f"{identifier}_topology" if iskeyword(identifier) or identifier in TAKEN else identifier


def _check(name: str, directory: Path) -> None:
    if not NAME.fullmatch(directory.name):
        raise TargetError(
            f"{name!r} is no name for a topology: it begins with a letter, and has only letters, digits, - and _"
        )
    if not directory.parent.is_dir():
        raise TargetError(f"there is no directory {str(directory.parent)!r} to make {directory.name!r} in")
    if directory.exists() and not _is_empty_directory(directory):
        raise TargetError(f"{name!r} exists already, and nothing is overwritten; choose another name")


def _is_empty_directory(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _next_steps(directory: Path, topology: str, test: str) -> str:
    return f"""\
{directory} has {topology} and {test}. Next:

  cd {shlex.quote(str(directory))}
  python -m stormlet run {topology}
  python -m pytest"""
