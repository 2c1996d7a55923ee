"""The files that are in a folder, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from stormlet.connect.files.bookmark import Mark
from stormlet.connect.files.opened import Opened

NOT_READ = (".part", ".lock")


class FolderFiles:
    """See :class:`~stormlet.connect.files.session.Files`. Files are read in the order of their names, as they are when
    it is their turn; files that are there when all are read are read too."""

    def __init__(
        self,
        folder: Path,
        pattern: str,
        marks: Mapping[tuple[int, int], Mark],
        open_: Callable[[Path], Opened],
        *,
        follow: bool,
    ) -> None:
        """``follow``: wait for more when all are read."""
        self.marks = dict(marks)
        self.is_over = False
        self._folder = folder
        self._pattern = pattern
        self._open = open_
        self._follow = follow
        self._current: Opened | None = None
        self._read: dict[tuple[int, int], bytes] = {}

    def current(self) -> Opened | None:
        """Return the file to read; None if there is none."""
        if self._current is None:
            self._current = self._next()
            self.is_over = self._current is None and not self._follow
        return self._current

    def at_end(self, opened: Opened, now: float) -> None:
        """All that is in it was read: what is behind the last line end is a line, too."""
        if opened.is_over:
            self._read[opened.key] = opened.head
            self._current = None
        opened.is_over = True

    def _next(self) -> Opened | None:
        for path in sorted(self._folder.glob(self._pattern)):
            if path.suffix in NOT_READ or not path.is_file():
                continue
            opened = self._open(path)
            mark = self.marks.get(opened.key)
            if mark is not None and mark.begins(opened.head) and mark.offset <= opened.size:
                opened.begin_at(mark.offset)
            if not self._was_read(opened) and opened.position < opened.size:
                return opened
            opened.close()
        return None

    def _was_read(self, opened: Opened) -> bool:
        """True if it was, in this session; what was added since is not read."""
        return opened.key in self._read and opened.head.startswith(self._read[opened.key])

    def close(self) -> None:
        """Close the file that is read."""
        if self._current is not None:
            self._current.close()
