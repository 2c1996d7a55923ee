"""The page's own files, below a name that is the digest of all of them: a browser may keep them for ever, and never
mixes those of two versions."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

import msgspec

TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
PLACE: Final = "static/"


class Asset(msgspec.Struct, frozen=True):
    """One file."""

    content: bytes
    type: str


class Assets(msgspec.Struct, frozen=True):
    """All files of the page."""

    html: bytes
    digest: str
    files: dict[str, Asset]
    """By name, without the page itself."""


@cache
def assets() -> Assets:
    """Read the files that come with the package, once."""
    found = {
        each.name: Asset(each.read_bytes(), _type(each.name))
        for each in sorted(files("stormlet.ui").joinpath("static").iterdir(), key=lambda each: each.name)
        if _type(each.name)
    }
    page = found.pop("index.html")
    digest = sha256(b"".join(each.content for each in found.values())).hexdigest()[:16]
    return Assets(page.content.replace(PLACE.encode(), f"{PLACE}{digest}/".encode()), digest, found)


def _type(name: str) -> str:
    return next((kind for suffix, kind in TYPES.items() if name.endswith(suffix)), "")
