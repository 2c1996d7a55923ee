"""The paths that sources and sinks of files are given."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from stormlet.errors import InvalidConfiguration


def local_path(given: str | Path) -> Path:
    """Return the absolute path. Raises :class:`~stormlet.errors.InvalidConfiguration` for the address of something
    else, which would be taken for a folder of a strange name."""
    text = str(given)
    if "://" in text:
        way_out = (
            f"write {urlsplit(text).path!r}" if text.startswith("file://") else "have them mounted there"
        )
        raise InvalidConfiguration(f"{text!r} is an address, and files are those of this machine: {way_out}")
    return Path(given).absolute()
