"""Whether the hot modules run compiled or interpreted, from the same files; imported before any of them.

The environment variable ``STORMLET_COMPILED`` decides: ``0`` runs the interpreted files even where compiled ones stand
beside them, ``1`` makes the import fail where they are missing, and without it what is there is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType

VARIABLE = "STORMLET_COMPILED"
PACKAGE = "stormlet."
PROBE = "stormlet.core.tuples"
"""They are compiled all together or not at all; this is one of them."""


def is_compiled() -> bool:
    """Whether the compiled modules are those that run."""
    spec = find_spec(PROBE)
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


class SourceFinder:
    """Finds the interpreted file of each module of this package."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As the import system asks; None for modules of others."""
        if not name.startswith(PACKAGE) or path is None:
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        return None


def _decide(wanted: str) -> None:
    if wanted not in {"", "0", "1"}:
        raise ImportError(f"{VARIABLE}={wanted!r} is neither 0 (interpreted) nor 1 (compiled)")
    if wanted == "0":
        sys.meta_path.insert(0, SourceFinder())
    elif wanted == "1" and not is_compiled():
        raise ImportError(
            f"{VARIABLE}=1, but this installation is not compiled; install it anew, with a C compiler: "
            f"{VARIABLE}=1 pip install --no-cache-dir --force-reinstall stormlet; or unset the variable"
        )


_decide(os.environ.get(VARIABLE, "").strip())
