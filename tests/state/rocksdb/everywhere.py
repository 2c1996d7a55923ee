"""A plugin of pytest by which tests run in RocksDB: topologies without ``state=``, and those with a file ``*.state``.

``python -m pytest -p tests.state.rocksdb.everywhere tests/law``
"""

from __future__ import annotations

import atexit
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stormlet.core.state.commits import Store
from stormlet.state import places, stores

_folder = TemporaryDirectory(prefix="stormlet-tests-")
atexit.register(_folder.cleanup)
_numbers = count()
_opened = stores.opened


def opened(target: Any, topology: str, *, history: float = 0.0) -> Store:
    """Nothing is in memory."""
    if target is None:
        return stores.owned(Path(_folder.name, f"{next(_numbers)}{places.ROCKSDB}"), topology)
    return _opened(target, topology, history=history)


stores.opened = opened
places.ROCKSDB = ".state"  # type: ignore[misc]
