"""Builds the hot modules as C extensions, from the same files that run interpreted; see docs/compiled.md.

``STORMLET_COMPILED`` says whether: ``0`` never, ``1`` or else the installation fails. Without it they are compiled
where that is possible, but not in an editable installation, where they would hide every later change of their files.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

WANTED = os.environ.get("STORMLET_COMPILED", "")
if WANTED not in ("", "0", "1"):
    sys.exit(f"STORMLET_COMPILED={WANTED!r} is neither 0 nor 1")


class BuildExtensions(build_ext):
    """Leaves out the extensions of an editable installation, unless they are asked for."""

    def finalize_options(self) -> None:
        """As setuptools asks."""
        super().finalize_options()
        self.parallel = os.cpu_count()
        if self.editable_mode and WANTED != "1":
            self.extensions = []


def extensions() -> list[Extension]:
    """One for each module that has declarations of its C types beside it."""
    if WANTED == "0":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if WANTED == "1":
            raise
        return []
    sources = [path.with_suffix(".py") for path in sorted(Path("stormlet").rglob("*.pxd"))]
    modules = [
        Extension(".".join(path.with_suffix("").parts), [str(path)], optional=WANTED != "1")
        for path in sources
    ]
    # Annotations say what a user may pass, not what C may rely on: a str may be of a subclass.
    directives = {"language_level": 3, "annotation_typing": False}
    return cythonize(modules, build_dir="build", compiler_directives=directives)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
