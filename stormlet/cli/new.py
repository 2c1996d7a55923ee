"""The ``new`` command."""

from __future__ import annotations

import re
import shlex
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


def new(name: Annotated[str, Parameter(show_default=False)], /) -> int:
    """Write a small topology with its test, to begin from.

    Both work as they are. Nothing that exists is overwritten.

    Parameters
    ----------
    name
        The directory to be made; its last part becomes the topology's name.
    """
    directory = Path(name)
    try:
        _check(name, directory)
        directory.mkdir(exist_ok=True)
        for file, text in TEMPLATES.items():
            with (directory / file).open("x", encoding="utf-8", newline="\n") as made:
                made.write(text.replace("NAME", directory.name))
    except OSError as error:
        raise TargetError(f"{error.filename or directory} cannot be written: {error.strerror}") from None
    write_text(f"{_next_steps(directory)}\n")
    return 0


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


def _next_steps(directory: Path) -> str:
    return f"""\
{directory} has {" and ".join(TEMPLATES)}. Next:

  cd {shlex.quote(str(directory))}
  python -m stormlet run topology.py
  python -m pytest"""
