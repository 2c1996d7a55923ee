"""Choice between the compiled and the interpreted form of the hot modules; imported before any of them.

The environment variable ``STORMLET_COMPILED`` decides: ``0`` runs the interpreted files even where there are compiled
ones, ``1`` makes the import fail where the compiled ones are missing. Without the variable the compiled ones run if
they are there. In a checkout they count as missing when one of their sources has changed since, as the change would
silently have no effect.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

VARIABLE = "STORMLET_COMPILED"
PACKAGE = "stormlet."
PROBE = "stormlet.core.tuples"
"""One of the hot modules; they are compiled all together or not at all."""


def is_compiled() -> bool:
    """Return True if the hot modules run compiled."""
    spec = find_spec(PROBE)
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


class SourceFinder:
    """Finds the interpreted file of each module of this package."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module, for the import system; None for modules of other packages."""
        if not name.startswith(PACKAGE) or path is None:
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        return None


def find_stale(package: Path) -> Path | None:
    """Return a module of a checkout whose compiled form does not match: because its source has changed since, because
    only other modules were compiled, or because it should not be compiled any more.

    Return None for an installed package, where dates show only the order in which files were copied.
    """
    compiled = dict(_dates(package, EXTENSION_SUFFIXES[0])) if _is_checkout(package) else {}
    if not compiled:
        return None
    declared = dict(_dates(package, ".pxd"))
    oldest = min(compiled.values())
    changed = {module for module, date in declared.items() if max(date, _date(module)) > oldest}
    return min(changed | (compiled.keys() ^ declared.keys()), default=None)


def _is_checkout(package: Path) -> bool:
    project = package.with_name("pyproject.toml")
    return project.exists() and f'name = "{package.name}"' in project.read_text("utf-8")


def _dates(package: Path, suffix: str) -> Iterator[tuple[Path, float]]:
    """Return the modules that have a file with this suffix, each with the date of the file's last change."""
    for folder, _, names in os.walk(package):  # ten times as fast as a glob
        for name in names:
            if name.endswith(suffix):
                path = Path(folder, name)
                yield path.with_name(f"{name.removesuffix(suffix)}.py"), path.stat().st_mtime


def _date(module: Path) -> float:
    return module.stat().st_mtime if module.exists() else 0.0


def _decide(wanted: str) -> None:
    if wanted not in {"", "0", "1"}:
        raise ImportError(f"{VARIABLE}={wanted!r} is neither 0 (interpreted) nor 1 (compiled)")
    if wanted == "0":
        _interpret()
        return
    package = Path(__file__).parent
    stale = find_stale(package)
    mismatch = f"the compiled modules do not match {stale}"
    again = f"compile anew: {VARIABLE}=1 pip install -e {package.parent}"
    if wanted == "1":
        _insist(f"{mismatch}; {again}" if stale else "")
    elif stale:
        _interpret()
        warnings.warn(f"{mismatch}, so the interpreted ones run; {again}", RuntimeWarning, stacklevel=3)


def _interpret() -> None:
    sys.meta_path.insert(0, SourceFinder())


def _insist(problem: str) -> None:
    if problem:
        raise ImportError(f"{VARIABLE}=1, but {problem}")
    if not is_compiled():
        raise ImportError(
            f"{VARIABLE}=1, but this installation is not compiled; install it anew, with a C compiler: "
            f"{VARIABLE}=1 pip install --no-cache-dir --force-reinstall stormlet; or unset the variable"
        )


_decide(os.environ.get(VARIABLE, "").strip())
