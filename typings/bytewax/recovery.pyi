from __future__ import annotations

from pathlib import Path

class RecoveryConfig:
    def __init__(self, db_dir: str | Path) -> None: ...

def init_db_dir(db_dir: Path, count: int) -> None: ...
