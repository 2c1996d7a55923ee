"""The folder in which a run keeps what is not checked yet, and its result what was kept."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic, sleep
from typing import Final
from weakref import finalize

QUIET: Final = 0.5
"""Seconds for which a folder must stay away until it counts as removed."""
LONGEST: Final = 5.0
"""Seconds after which it is left to itself."""


class Staging:
    """A folder that is removed with this object, and at the end of the process at the latest."""

    def __init__(self, parent: str | None) -> None:
        """Make a folder in ``parent``, or in the folder for temporary files. Raises :class:`OSError`."""
        self.path = Path(mkdtemp(prefix="stormlet-", dir=parent))
        self._removal = finalize(self, rmtree, self.path, ignore_errors=True)

    def remove(self, name: str) -> None:
        """Remove a folder in it, if there is one."""
        rmtree(self.path / name, ignore_errors=True)

    def remove_from_writers(self) -> None:
        """Remove it now, though tasks that were cancelled may write into it, and make it anew, for a moment longer."""
        began = away_since = monotonic()
        while monotonic() - away_since < QUIET and monotonic() - began < LONGEST:
            if self.path.exists():
                rmtree(self.path, ignore_errors=True)
                away_since = monotonic()
            sleep(QUIET / 10)
        self._removal()
