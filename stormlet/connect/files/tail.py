"""The files that a tail reads: the one at a path, and those that were there before it was rotated.

Theory of operation
-------------------
A log is rotated in two ways. It is renamed, and a new file gets its name; the writer may go on in the old one for a
moment. Or it is copied and emptied (``copytruncate``), and the rest of it is found in the copy, which begins with the
same bytes. Renamed files and copies have the name of the log and something behind it, in the same folder; compressed
ones are not read. The time of their last change says in which order they were written.

What has no mark was not read. So at the very first start all files but the log itself get a mark at their end, and no
rule is needed for what is new.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from stormlet.connect.files.bookmark import TELLING, Bookmark, Mark
from stormlet.connect.files.opened import Opened, Split

logger = logging.getLogger("stormlet.connect")

NOT_READ = (".gz", ".bz2", ".xz", ".zst", ".lock", ".part", ".bookmark")


class TailFiles:
    """See :class:`~stormlet.connect.files.session.Files`."""

    is_over = False

    def __init__(self, path: Path, bookmark: Bookmark, split: Split, *, at_end: bool, linger: float) -> None:
        """``at_end``: without a bookmark, begin behind what is there. ``linger``: seconds without a line after which a
        file that was renamed is over."""
        self._path = path
        self._split = split
        self._linger = linger
        self._quiet = (0, 0.0)
        self._queue: deque[Opened] = deque()
        self.marks = dict(bookmark.marks)
        if bookmark.is_new:
            self._begin(at_end=at_end)
        else:
            self._resume()
        self.marks.update((each.key, each.mark()) for each in self._queue)

    def _begin(self, *, at_end: bool) -> None:
        for opened in self._there():
            if at_end or opened.path != self._path:
                opened.begin_at(opened.size)
            self._read_or_pass_over(opened)

    def _resume(self) -> None:
        there = [(opened, self._mark_of(opened)) for opened in self._there()]
        known, self.marks = self.marks, {}
        for opened, mark in there:
            opened.begin_at(0 if mark is None else mark.offset)
            self._read_or_pass_over(opened)
        if known and all(mark is None for _, mark in there):
            logger.warning("none of the files that were read before is left beside %s", self._path)

    def _read_or_pass_over(self, opened: Opened) -> None:
        if opened.position < opened.size or opened.path == self._path:
            self._queue.append(opened)
        else:
            self.marks[opened.key] = opened.mark()
            opened.close()

    # What there is.

    def _open(self, path: Path) -> Opened | None:
        try:
            return Opened(path, self._split)
        except FileNotFoundError:
            return None

    def _there(self) -> list[Opened]:
        """All files of this log, the oldest first."""
        named = (each for each in self._path.parent.iterdir() if each.name.startswith(self._path.name))
        found = [each for each in named if each.suffix not in NOT_READ and each.is_file()]
        opened = [each for path in found if (each := self._open(path)) is not None]
        return sorted(opened, key=lambda each: (each.path == self._path, each.changed))

    def _mark_of(self, opened: Opened) -> Mark | None:
        """The mark of a file; that of the one that it is a copy of."""
        own = self.marks.get(opened.key)
        if own is not None:
            return own if own.begins(opened.head) and own.offset <= opened.size else None
        telling = (each for each in self.marks.values() if each.head_size >= TELLING)
        copied = (each for each in telling if each.begins(opened.head) and each.offset <= opened.size)
        return next(copied, None)

    # What is read.

    def current(self) -> Opened | None:
        """Return the file to read; None if there is none."""
        if not self._queue and (opened := self._open(self._path)) is not None:
            self._queue.append(opened)
        return self._queue[0] if self._queue else None

    def at_end(self, opened: Opened, now: float) -> None:
        """All that is in it was read, for now."""
        if opened.is_over:
            self.marks[opened.key] = opened.mark()
            self._queue.popleft()
            if not self._queue:
                self._queue.extend(self._after(opened))
        elif opened.was_emptied:
            self._go_on_in_a_copy(opened)
        elif not self._is_at_its_path(opened):
            opened.is_over = len(self._queue) > 1 or self._is_quiet(opened, now)

    def _is_at_its_path(self, opened: Opened) -> bool:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) == opened.key

    def _is_quiet(self, opened: Opened, now: float) -> bool:
        """True if nothing was written to it for a while."""
        position, since = self._quiet
        if position != opened.size or since == 0:
            self._quiet = (opened.size, now)
            return False
        if now - since < self._linger:
            return False
        self._quiet = (0, 0.0)
        return True

    def _after(self, opened: Opened) -> Iterator[Opened]:
        """The files that were not read. The marks of those that are gone are forgotten."""
        there = self._there()
        for each in there:
            if each.key != opened.key and (each.path == self._path or self._mark_of(each) is None):
                yield each
            else:
                each.close()
        keys = {each.key for each in there}
        self.marks = {key: mark for key, mark in self.marks.items() if key in keys}

    def close(self) -> None:
        """Close the files that wait."""
        for opened in self._queue:
            opened.close()

    def _go_on_in_a_copy(self, opened: Opened) -> None:
        copy = self._copy_of(opened)
        if copy is None:
            logger.warning("%s was emptied: what was behind byte %d is lost", opened.path, opened.position)
            opened.forget()
        else:
            opened.move_to(copy)
        opened.is_over = copy is None

    def _copy_of(self, opened: Opened) -> Opened | None:
        """The last file that begins as one that was emptied, and has all that was read of it."""
        found: list[Opened] = []
        for each in self._there():
            begins = len(opened.head) >= TELLING and each.head.startswith(opened.head)
            if begins and each.key != opened.key and each.size >= opened.position:
                found.append(each)
            else:
                each.close()
        for each in found[:-1]:
            each.close()
        return found[-1] if found else None
