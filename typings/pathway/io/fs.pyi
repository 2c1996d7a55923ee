from __future__ import annotations

from pathway import Table

def read(path: str, *, format: str, mode: str) -> Table: ...
