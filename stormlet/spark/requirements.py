"""Checks of the packages and the Java that Spark needs, before any JVM starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from stormlet.errors import SparkUnavailable

INSTALL = 'pip install "stormlet[spark]"'
JAVA_VERSIONS = (17, 21)
VECTOR_MODULE = "jdk.incubator.vector"
"""Module that Spark's start script adds; a Java without it ends at once."""
JAVA_SECONDS = 30.0
"""Seconds that Java has to report its version."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a package that work with the others: from ``least`` on, below ``below``."""

    least: tuple[int, ...]
    below: tuple[int, ...] | None = None

    def __contains__(self, release: tuple[int, ...]) -> bool:
        return release >= self.least and (self.below is None or release < self.below)

    def __str__(self) -> str:
        limits = f">={_dotted(self.least)}"
        return limits if self.below is None else f"{limits},<{_dotted(self.below)}"


PACKAGES: Mapping[str, Versions] = {
    "pyspark": Versions((4, 0), (5,)),
    "pyarrow": Versions((20, 0)),  # before, it casts no slice of structs beside which there is a null
    "pandas": Versions((2, 2), (3,)),
}
"""Packages of the extra ``spark``; PySpark's ``mapInArrow`` needs the last two."""


def check_packages() -> None:
    """Raise :class:`~stormlet.errors.SparkUnavailable` if a package is missing or does not fit."""
    for problem in _package_problems():
        raise SparkUnavailable(f"{problem}; {INSTALL} installs versions that work together")


def check_java() -> None:
    """Raise :class:`~stormlet.errors.SparkUnavailable` if the Java that Spark would start does not fit."""
    java = _find_java()
    modules = _modules_of(java)
    found = _release_of(modules)
    if found not in JAVA_VERSIONS:
        which = "an older Java" if found is None else f"Java {found}"
        raise SparkUnavailable(f"Spark needs Java 17 or 21, and {java} is {which}; {_other_java()}")
    if VECTOR_MODULE not in modules:
        raise SparkUnavailable(
            f"Spark needs Java's module {VECTOR_MODULE}, which {java} lacks; {_other_java()}"
        )


def _package_problems() -> Iterator[str]:
    for package, versions in PACKAGES.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            yield f"Spark needs {package}{versions}, which is not installed"
        else:
            if _release(found) not in versions:
                yield f"Spark needs {package}{versions}, and version {found} is installed"


def _find_java() -> str:
    """The Java that Spark's start script takes."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = shutil.which(str(Path(home, "bin", "java")))
        if java is None:
            raise SparkUnavailable(f"JAVA_HOME is {home}, where there is no bin/java; {_other_java()}")
        return java
    java = shutil.which("java")
    if java is None:
        raise SparkUnavailable(
            "Spark needs Java 17 or 21, and there is no java on the PATH; install a JDK, or let JAVA_HOME point to one"
        )
    return java


def _modules_of(java: str) -> Mapping[str, str]:
    """Module -> version; empty for a Java without modules, 8 or older."""
    try:
        # One start says all: the version of java.base is that of Java.
        listed = subprocess.run(
            [java, "--list-modules"], capture_output=True, text=True, timeout=JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkUnavailable(f"{java} does not run ({error}); {_other_java()}") from error
    lines = listed.stdout.split()
    return {name: release for name, _, release in (line.partition("@") for line in lines)}


def _release_of(modules: Mapping[str, str]) -> int | None:
    base = re.match(r"\d+", modules.get("java.base", ""))
    return None if base is None else int(base[0])


def _release(text: str) -> tuple[int, ...]:
    """``"4.1.0.dev2"`` -> ``(4, 1, 0)``."""
    release = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, release[0].split("."))) if release else ()


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))


def _other_java() -> str:
    return "let JAVA_HOME point to a JDK 17 or 21"
