"""Errors of sqlite in sentences that name the file and the way out."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from stormlet.errors import StateUnusable
from stormlet.state.refusals import DISK_FULL, DISK_WORKS

BEGIN_ANEW = (
    "put a saved copy in its place, without the -wal and -shm files beside it, or remove it to begin anew"
)


class Damaged(Exception):
    """A row is not as it was written."""


@contextmanager
def named(path: Path) -> Generator[None]:
    """Have errors of sqlite raised as :class:`~stormlet.errors.StateUnusable`."""
    try:
        yield
    except sqlite3.Error as error:
        raise StateUnusable(f"{path} {_sentence(error)}") from error
    except (Damaged, UnicodeDecodeError) as error:  # the latter of a name that is no text any more
        raise StateUnusable(f"{path} {damaged(error)}") from error


def _sentence(error: sqlite3.Error) -> str:
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return DISK_FULL
        case sqlite3.SQLITE_IOERR:
            return f"cannot be read or written ({_name(error)}: {error}); {DISK_WORKS}"
        case sqlite3.SQLITE_CORRUPT:
            return damaged(error)
        case sqlite3.SQLITE_NOTADB:
            return f"is no state file, or its beginning is damaged; give another path, or {BEGIN_ANEW}"
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return (
                f"cannot be opened to write ({error}); give this user the right to write it and its directory"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "is locked by another program that writes to it; end that program, and start again"
        case _:
            return f"cannot be used ({error}); give another path, or {BEGIN_ANEW}"


def damaged(error: object) -> str:
    """Return the sentence for what is not as it was written, without the path before it."""
    return f"is damaged ({error}); {BEGIN_ANEW}"


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", "SQLITE_IOERR"))
