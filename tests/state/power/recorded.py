"""A run whose writes are recorded: ``python -m tests.state.power.recorded FOLDER EPOCHS [PRAGMA …]``.

It appends the number of each epoch that is durable to a file ``told``, and saves a copy before the last one.
"""

from __future__ import annotations

import os
import sys

from stormlet.state.sqlite.file import StateFile
from tests.state.connections import connection_of
from tests.state.programs import Program

SEED = 1
FEW_PAGES = 40
"""Sqlite copies its log into the file this often, rather than at each thousand pages."""


def main() -> None:
    folder, epochs, *pragmas = sys.argv[1:]
    told = os.open(f"{folder}/told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
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
