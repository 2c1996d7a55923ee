"""A look at the connection that a state file has, for faults that nobody else can bring about."""

from __future__ import annotations

import sqlite3
from typing import Any

from stormlet.state.sqlite.file import StateFile


def connection_of(file: StateFile) -> sqlite3.Connection:
    untyped: Any = file
    connection: sqlite3.Connection = untyped._database._connection
    return connection
