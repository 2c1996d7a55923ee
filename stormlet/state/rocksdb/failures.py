"""Errors of RocksDB in sentences that name the directory and the way out."""

from __future__ import annotations

from pathlib import Path

from stormlet.errors import StateUnusable
from stormlet.state.refusals import DISK_FULL, DISK_WORKS

BEGIN_ANEW = "put a saved copy in its place, or remove it to begin anew"


def unusable(path: Path, error: Exception) -> StateUnusable:
    """Return what one of RocksDB's own, or of the operating system, is raised as."""
    return StateUnusable(f"{path} {_sentence(str(error))}")


def _sentence(text: str) -> str:
    # There are no codes: rocksdict raises a bare Exception with the words of RocksDB.
    lowered = text.lower()
    if "no space left" in lowered:
        return DISK_FULL
    if "already closed" in lowered:
        return "is closed, as the run that had it is over; ask while it goes on"
    if "lock" in lowered and ("while lock file" in lowered or "lock hold" in lowered):
        return "is locked by another program; end that program, and start again"
    if "permission denied" in lowered or "read-only file system" in lowered:
        return f"cannot be opened to write ({_first_line(text)}); give this user the right to write in it"
    if lowered.startswith("corruption") or "no such file" in lowered:
        return damaged(_first_line(text))
    if lowered.startswith(("io error", "[errno")):
        return f"cannot be read or written ({_first_line(text)}); {DISK_WORKS}"
    return f"cannot be used ({_first_line(text)}); give another path, or {BEGIN_ANEW}"


def damaged(what: str) -> str:
    """Return the sentence for what is not as it was written, without the path before it."""
    return f"is damaged ({what}); {BEGIN_ANEW}"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "for no reason given"
