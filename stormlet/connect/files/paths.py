"""The paths that sources and sinks of files are given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from stormlet.connect.secrets import HIDDEN
from stormlet.errors import InvalidConfiguration

_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
"""Its scheme has two letters at least: ``C://logs`` is a path of Windows."""


def local_path(given: str | Path) -> Path:
    """Return the absolute path. Raises :class:`~stormlet.errors.InvalidConfiguration` for the address of something
    else, which would be taken for a folder of a strange name."""
    found = _ADDRESS.fullmatch(str(given))
    if found is None:
        return Path(given).absolute()
    scheme, rest = found.groups()
    path = rest.removeprefix("localhost")
    is_here = scheme.lower() == "file" and path.startswith("/")
    way_out = f"write {unquote(path)!r}" if is_here else "have them mounted there"
    raise InvalidConfiguration(
        f"{_shown(scheme, rest)!r} is an address, and files are those of this machine: {way_out}"
    )


def _shown(scheme: str, rest: str) -> str:
    """An address without what may be a password or a signature."""
    user, at, place = rest.partition("?")[0].rpartition("@")
    return f"{scheme}://{HIDDEN if user else ''}{at}{place}"
