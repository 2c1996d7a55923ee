from __future__ import annotations

from collections.abc import Callable

from pathway import Table
from pathway.io import fs as fs
from pathway.io import python as python

def subscribe(table: Table, on_change: Callable[[object, dict[str, str], int, bool], None]) -> None: ...
