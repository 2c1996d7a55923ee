"""Choice between the compiled and the interpreted form of the hot modules; imported before any of them.

Python prefers an extension to the file that it was made from, so what is installed runs. Two things keep it from that:
the environment variable ``STORMLET_COMPILED=0``, and a checkout, where an extension would hide every later edit.
``STORMLET_COMPILED=1`` makes the import fail where interpreted files would run.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path

VARIABLE = "STORMLET_COMPILED"
PROBE = "stormlet.core.tuples"
"""One of the hot modules; they are compiled all together or not at all."""
_AGAIN = "pip install --no-cache-dir --force-reinstall --no-deps"
"""The command by which pip does not take the wheel that it has kept."""


def is_compiled() -> bool:
    """Return True if the hot modules run compiled."""
    return str(import_module(PROBE).__file__).endswith(tuple(EXTENSION_SUFFIXES))


def how_it_runs() -> str:
    """Return ``compiled``, or ``interpreted`` with the reason."""
    return "compiled" if is_compiled() else f"interpreted, {_why_interpreted()}"


def _why_interpreted() -> str:
    if _wanted() == "0":
        return f"as {VARIABLE}=0 asks for"
    if is_checkout(Path(__file__).parent):
        return "as a checkout always is"
    return f"as no C extensions were built when it was installed: '{VARIABLE}=1 {_AGAIN} stormlet' says why"


def _wanted() -> str:
    return os.environ.get(VARIABLE, "").strip()


def is_checkout(package: Path) -> bool:
    """Return True for the package in its own project, False where libraries are installed."""
    project = package.with_name("pyproject.toml")
    return project.exists() and f'name = "{package.name}"' in project.read_text("utf-8")


def _decide(wanted: str) -> None:
    if wanted not in {"", "0", "1"}:
        raise ImportError(f"{VARIABLE}={wanted!r} is neither 0 (interpreted) nor 1 (compiled)")
    package = Path(__file__).parent
    checkout = is_checkout(package)
    if wanted == "0" or checkout:
        _interpret(package)
    if wanted == "1" and not is_compiled():
        here = f"{package.parent} is a checkout, which" if checkout else "this installation"
        way = f"pip install {package.parent} --no-cache-dir" if checkout else f"{_AGAIN} stormlet"
        raise ImportError(
            f"{VARIABLE}=1, but {here} is not compiled; install it anew, with a C compiler: "
            f"{VARIABLE}=1 {way}; or unset the variable"
        )


def _interpret(package: Path) -> None:
    """Have Python look into the folders of this package as it does where no extensions are known."""
    loaders = (SourceFileLoader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES)
    for folder, _, _ in os.walk(package):  # ten times as fast as a glob
        sys.path_importer_cache[folder] = FileFinder(folder, *loaders)


_decide(_wanted())
