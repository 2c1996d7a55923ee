"""Builds the hot modules as C extensions, all of them or none, from the same files that run interpreted.

Where they cannot be built, the installation is interpreted. ``STORMLET_COMPILED=1`` makes that an error, ``0`` does not
try; see docs/compiled.md.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

WANTED = os.environ.get("STORMLET_COMPILED", "").strip()
if WANTED not in {"", "0", "1"}:
    sys.exit(f"STORMLET_COMPILED={WANTED!r} is neither 0 (interpreted) nor 1 (compiled)")

EDITABLE = not {"editable_wheel", "develop"}.isdisjoint(sys.argv)
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
FLAGS = ("-O2", "-g0", "-fno-plt")  # a fifth of the size that Python's own give, and fewer cache misses
# Annotations say what a user may pass, not what C may rely on: a str may be of a subclass. And a None where a tuple
# should be is the user's mistake, which must not end the process.
DIRECTIVES = {"language_level": 3, "annotation_typing": False, "nonecheck": True}


class NotCompiled(Exception):
    """There are no extensions, and why."""


class BuildModules(build_py):
    """Collects all modules anew: what an earlier build in this folder has left, of modules that are gone, would be
    installed too."""

    def run(self) -> None:
        """As setuptools calls it, before the extensions are built."""
        rmtree(Path(self.build_lib, "stormlet"), ignore_errors=True)
        super().run()


class BuildExtensions(build_ext):
    """Builds all extensions anew, or raises :class:`NotCompiled`."""

    def run(self) -> None:
        """As setuptools calls it, for a wheel and in place."""
        refuse_other_pythons()
        try:
            super().run()
        except NotCompiled:
            raise
        except Exception as error:
            raise NotCompiled(f"the C extensions could not be built: {error}") from error

    def build_extensions(self) -> None:
        """From the C files of all modules."""
        if not self.compiles():
            raise NotCompiled("there is no C compiler that works, with Python's headers")
        flags = self.flags()
        for extension, sources in zip(self.extensions, translate(self.extensions), strict=True):
            extension.sources = sources
            extension.extra_compile_args = flags
        super().build_extensions()

    def flags(self) -> list[str]:
        """Ours as far as the compiler knows them; the user's are repeated, as the last of two that differ wins."""
        if self.compiler.compiler_type != "unix":
            return []
        return [*filter(self.compiles, FLAGS), *shlex.split(os.environ.get("CFLAGS", ""))]

    def compiles(self, *flags: str) -> bool:
        """Whether the compiler is there, finds Python's headers and knows the flags."""
        with TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text("#include <Python.h>\n", "utf-8")
            try:
                self.compiler.compile([str(probe)], output_dir=folder, extra_postargs=list(flags))
            except Exception:  # each kind of compiler has its own
                return False
            return True


def refuse_other_pythons() -> None:
    """Only CPython with its lock gains by extensions."""
    if sys.implementation.name != "cpython":
        raise NotCompiled("extensions are slow on other Pythons than CPython")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NotCompiled("extensions would enable the lock that this build of Python does without")


def translate(extensions: list[Extension]) -> list[list[str]]:
    """The C files of each module."""
    from Cython.Build import cythonize

    options = {"build_dir": "build", "compiler_directives": DIRECTIVES, "force": True, "quiet": True}
    return [translated.sources for translated in cythonize(extensions, **options)]


def remove_extensions() -> None:
    """What builds in place for this Python have left, and would hide the modules as they are now."""
    for path in Path().glob(f"stormlet/**/*{SUFFIX}"):
        path.unlink()


def hot_modules() -> list[Extension]:
    """One for each module that has declarations of its C types beside it."""
    sources = [path.with_suffix(".py") for path in sorted(Path("stormlet").rglob("*.pxd"))]
    return [Extension(".".join(path.with_suffix("").parts), [path.as_posix()]) for path in sources]


def build_compiled() -> None:
    """As ``setup`` does, with the extensions; the wheel is one of this platform."""
    setup(
        ext_modules=hot_modules(),
        cmdclass={"build_py": BuildModules, "build_ext": BuildExtensions},
        options={"build_ext": {"parallel": os.cpu_count()}},
    )


def build_interpreted() -> None:
    """As ``setup`` does; the wheel is one of all platforms."""
    setup(cmdclass={"build_py": BuildModules})


def build() -> None:
    """Compiled if it can be, and never an editable installation, as its extensions would hide every later change."""
    if EDITABLE and WANTED == "1":
        sys.exit("stormlet: STORMLET_COMPILED=1, but an editable installation is interpreted: leave -e out")
    if EDITABLE:
        remove_extensions()
        setup()
        return
    if WANTED == "0":
        build_interpreted()
        return
    try:
        build_compiled()
    except NotCompiled as reason:
        if WANTED == "1":
            sys.exit(f"stormlet: STORMLET_COMPILED=1, but {reason}")
        print(f"stormlet: the interpreted files alone are installed, as {reason}", flush=True)
        build_interpreted()


build()
