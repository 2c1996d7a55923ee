"""Sources that read files, and their options."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, overload

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.decoding import Received
from stormlet.connect.driver.options import NotNegative, Positive, SourceOptions, checked
from stormlet.connect.files.bookmark import Bookmark
from stormlet.connect.files.folder import FolderFiles
from stormlet.connect.files.opened import Opened, cells, lines, rows
from stormlet.connect.files.parquet import OpenedParquet, needs_pyarrow
from stormlet.connect.files.paths import local_path
from stormlet.connect.files.session import Files, FileSession
from stormlet.connect.files.tail import TailFiles
from stormlet.connect.session import Capabilities, Delivery, Settles, SourceContext
from stormlet.connect.source import Source
from stormlet.errors import BrokerRefused

T = TypeVar("T")

Format = Literal["lines", "csv", "parquet"]


class TailSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of :class:`Tail`, beside those of all sources."""

    start: Literal["begin", "end"]
    poll: Positive
    linger: NotNegative


class LinesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of :class:`Lines`, beside those of all sources."""

    pattern: str | None
    format: Format
    follow: bool
    poll: Positive


class _Reading(Source[T]):
    """The common part of both sources."""

    _is_finite = False

    def __init__(
        self, path: str | Path, bookmark: str | Path, poll: float, as_: Any, options: SourceOptions
    ) -> None:
        self.path = local_path(path)
        super().__init__(self.path.as_uri(), as_=as_, **options)
        self._bookmark = local_path(bookmark)
        self._poll = poll

    @property
    def capabilities(self) -> Capabilities:
        """Positions in files."""
        return Capabilities(settles=Settles.PREFIX, is_finite=self._is_finite)

    @property
    def resume_advice(self) -> str:
        """It has a position of its own."""
        return "it goes on by its bookmark; leave out state="

    @property
    def reads(self) -> tuple[str, ...]:
        """The path."""
        return (str(self.path),)

    async def begin(self, address: Address, context: SourceContext) -> FileSession:
        """Read the bookmark, and find the files."""
        if context.parallelism > 1:
            raise BrokerRefused(
                f"{context.component!r} reads files, which one task does: parallelism must be 1"
            )
        bookmark = Bookmark(self._bookmark)
        try:
            files = self._files(Path(address.path), bookmark)
            await asyncio.to_thread(bookmark.save, list(files.marks.values()))
        except OSError as error:
            bookmark.close()
            raise BrokerRefused(f"{address.path} cannot be read: {error.strerror}") from None
        except BaseException:
            bookmark.close()
            raise
        return FileSession(context, files, bookmark, self._poll)

    def _files(self, path: Path, bookmark: Bookmark) -> Files:
        raise NotImplementedError


class Tail(_Reading[T]):
    """Lines of a file that grows, as ``tail -F`` prints them, through rotations; each is kept until its tree is done.

    A line begins to be one with its line end; empty ones are passed over.
    """

    @overload
    def __init__(
        self: Tail[Received],
        path: str | Path,
        *,
        bookmark: str | Path,
        as_: None = None,
        start: Literal["begin", "end"] = "begin",
        poll: float = 0.2,
        linger: float = 5.0,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        path: str | Path,
        *,
        bookmark: str | Path,
        as_: type[T],
        start: Literal["begin", "end"] = "begin",
        poll: float = 0.2,
        linger: float = 5.0,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    def __init__(
        self,
        path: str | Path,
        *,
        bookmark: str | Path,
        as_: Any = None,
        start: Literal["begin", "end"] = "begin",
        poll: float = 0.2,
        linger: float = 5.0,
        **options: Unpack[SourceOptions],
    ) -> None:
        """``bookmark`` is the file that says how far it is done, one for each source; without it, lines are read from
        the ``start`` of the file, or from its end. ``poll``: seconds between two looks. ``linger``: seconds for which a
        file that was renamed may still be written to."""
        super().__init__(path, bookmark, poll, as_, options)
        checked(TailSettings(start=start, poll=poll, linger=linger))
        self._start = start
        self._linger = linger

    def _files(self, path: Path, bookmark: Bookmark) -> Files:
        if not path.parent.is_dir():
            raise BrokerRefused(f"there is no folder {path.parent}")
        if path.is_dir():
            raise BrokerRefused(f"{path} is a folder: Tail reads one file, and Lines those of a folder")
        at_end = self._start == "end"
        return TailFiles(path, bookmark, lines, at_end=at_end, linger=self._linger)


class Lines(_Reading[T]):
    """Lines or rows of the files of a folder, one file after another by their names, each once; a file of JSON has a
    value on each line (JSONL). It ends when all are read, unless it is to ``follow``.

    Put a file there under another name, and rename it when it is complete: what is added to one that was read is read
    only by the next run.
    """

    @overload
    def __init__(
        self: Lines[Received],
        folder: str | Path,
        *,
        bookmark: str | Path,
        as_: None = None,
        pattern: str | None = None,
        format: Format = "lines",
        follow: bool = False,
        poll: float = 1.0,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        folder: str | Path,
        *,
        bookmark: str | Path,
        as_: type[T],
        pattern: str | None = None,
        format: Format = "lines",
        follow: bool = False,
        poll: float = 1.0,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    def __init__(
        self,
        folder: str | Path,
        *,
        bookmark: str | Path,
        as_: Any = None,
        pattern: str | None = None,
        format: Format = "lines",  # noqa: A002 - the word for it
        follow: bool = False,
        poll: float = 1.0,
        **options: Unpack[SourceOptions],
    ) -> None:
        """``bookmark`` is a file outside of the folder, or one that ``pattern`` does not name, by default ``"*"``.
        ``format="csv"`` makes an object of each row, by the names in the first one; numbers may be fields of ``as_``.
        ``format="parquet"``, for ``"*.parquet"``, makes one of each row, too, and needs ``stormlet[parquet]``. A file
        that is damaged ends the run."""
        super().__init__(folder, bookmark, poll, as_, options)
        checked(LinesSettings(pattern=pattern, format=format, follow=follow, poll=poll))
        self._format: Format = format
        self._pattern = pattern or ("*.parquet" if format == "parquet" else "*")
        self._follow = follow
        self._is_finite = not follow
        if format != "lines" and as_ not in (None, bytes, str):
            self.decode: Callable[[Delivery], Any] = _texts_as(as_)

    def _files(self, path: Path, bookmark: Bookmark) -> Files:
        if not path.is_dir():
            raise BrokerRefused(f"there is no folder {path}")
        if self._bookmark.parent == path and self._bookmark.match(self._pattern):
            raise BrokerRefused(f"the bookmark {self._bookmark} would be read: put it elsewhere")
        if self._format == "parquet":
            needs_pyarrow()
        return FolderFiles(path, self._pattern, bookmark.marks, OPENING[self._format], follow=self._follow)


def _texts_as(as_: Any) -> Callable[[Delivery], Any]:
    decode = msgspec.json.Decoder(as_, strict=False).decode
    return lambda delivery: decode(delivery.body)


def _csv(path: Path) -> Opened:
    with path.open("rb") as file:
        first = file.readline()
    opened = Opened(path, rows(cells(first)))
    opened.begin_at(len(first))
    return opened


OPENING: dict[Format, Callable[[Path], Opened]] = {
    "lines": partial(Opened, split=lines),
    "csv": _csv,
    "parquet": OpenedParquet,
}
"""Opens a file of each format."""
