"""``stormlet --version``: the versions that matter in a report of a fault."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from stormlet.acceleration import is_compiled

PACKAGES = ("msgspec", "uvloop", "cyclopts", "rich", "fast-sugiyama", "pyspark", "pyarrow")


def versions() -> str:
    """One a line; nothing is imported for it."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    runs = "compiled" if is_compiled() else "interpreted"
    lines = (
        f"stormlet {_version('stormlet')} ({runs})",
        python,
        *(f"{name} {_version(name)}" for name in PACKAGES),
    )
    return "\n".join((*lines, platform.platform()))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
