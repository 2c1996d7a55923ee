"""The folder in which a run keeps what is not checked yet, and its result what was kept."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize


class Staging:
    """A folder that is removed with this object, and at the end of the process at the latest."""

    def __init__(self, parent: str | None) -> None:
        """Make a folder in ``parent``, or in the folder for temporary files. Raises :class:`OSError`."""
        self.path = Path(mkdtemp(prefix="stormlet-", dir=parent))
        self._removal = finalize(self, rmtree, self.path, ignore_errors=True)

    def remove(self) -> None:
        """Remove it now."""
        self._removal()
