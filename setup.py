"""Builds the hot modules as C extensions, from the same files that run interpreted; see docs/compiled.md.

``STORMLET_COMPILED=1`` asks for it: then the installation fails where it is not possible.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

WANTED = os.environ.get("STORMLET_COMPILED", "").strip()
if WANTED not in {"", "0", "1"}:
    sys.exit(f"STORMLET_COMPILED={WANTED!r} is neither 0 (interpreted) nor 1 (compiled)")


def extensions() -> list[Extension]:
    """One for each module that has declarations of its C types beside it."""
    from Cython.Build import cythonize

    sources = [path.with_suffix(".py") for path in sorted(Path("stormlet").rglob("*.pxd"))]
    modules = [Extension(".".join(path.with_suffix("").parts), [str(path)]) for path in sources]
    # Annotations say what a user may pass, not what C may rely on: a str may be of a subclass. And a None where a tuple
    # should be is the user's mistake, which must not end the process.
    directives = {"language_level": 3, "annotation_typing": False, "nonecheck": True}
    return cythonize(modules, build_dir="build", compiler_directives=directives)


parallel = {"build_ext": {"parallel": os.cpu_count()}}
setup(ext_modules=extensions() if WANTED == "1" else [], options=parallel)
