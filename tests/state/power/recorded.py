"""A run whose writes are recorded: ``python -m tests.state.power.recorded FOLDER EPOCHS [PRAGMA …]``, or ``rocksdb``
instead of pragmas, which may be followed by ``unsynced``.

It appends the number of each epoch that is durable to a file ``told``, and saves a copy before the last one; of RocksDB
it saves none.
"""

from __future__ import annotations

import os
import sys

from stormlet.state.rocksdb.database import Database
from stormlet.state.rocksdb.directory import StateDirectory
from stormlet.state.sqlite.file import StateFile
from tests.state.connections import connection_of
from tests.state.programs import Program

SEED = 1
LIFE = 12
"""Epochs from one opening of RocksDB to the next."""
FEW_PAGES = 40
"""Sqlite copies its log into the file this often, rather than at each thousand pages."""


def run_in_rocksdb(folder: str, epochs: int, told: int) -> None:
    """It is opened anew now and then, so that its log becomes files of other kinds."""
    for number in range(epochs):
        if number % LIFE == 0:
            store = StateDirectory(f"{folder}/words.rocksdb", "words")
            program = Program(store, SEED)
        program.commit()
        os.write(told, b"%d\n" % program.epoch)
        if number % LIFE == LIFE - 1:
            store.close()


def main() -> None:
    folder, epochs, *pragmas = sys.argv[1:]
    told = os.open(f"{folder}/told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if pragmas[:1] == ["rocksdb"]:
        if "unsynced" in pragmas:
            Database.sync_log = lambda _: None  # type: ignore[method-assign]
        run_in_rocksdb(folder, int(epochs), told)
        return
    file = StateFile(f"{folder}/words.state", "words")
    for pragma in (f"wal_autocheckpoint={FEW_PAGES}", *pragmas):
        connection_of(file).execute(f"PRAGMA {pragma}")
    program = Program(file, SEED)
    for _ in range(int(epochs) - 1):
        program.commit()
        os.write(told, b"%d\n" % program.epoch)
    file.backup(f"{folder}/copy")
    os.write(told, b"saved\n")
    program.commit()
    os.write(told, b"%d\n" % program.epoch)
    file.close()


if __name__ == "__main__":
    main()
