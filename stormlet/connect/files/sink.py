"""A sink that writes files, each complete when it gets its name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from time import time_ns
from typing import TypeVar, Unpack

from stormlet.connect.address import Address
from stormlet.connect.driver.options import SinkOptions
from stormlet.connect.files.bookmark import replace
from stormlet.connect.files.paths import local_path
from stormlet.connect.session import DONE, ConnectContext, Item, Written
from stormlet.connect.sink import Sink
from stormlet.errors import BrokerRefused

T = TypeVar("T")


class Write(Sink[T]):
    """Writes values as lines to files of a folder, a value a line, as JSON.

    A file has up to ``size`` values that come ``within`` so many seconds. It is written under another name, brought to
    disk, and renamed; only then are its inputs acked. So a file with a name is complete, and none changes. What is left
    as ``.part`` by a process that was killed is written again, and may be deleted.
    """

    def __init__(self, folder: str | Path, *, suffix: str = ".jsonl", **options: Unpack[SinkOptions]) -> None:
        """``size`` is 10,000 and ``within`` 5 s, unless they are given; files are smaller where ``max_spout_pending``
        is set to less. ``suffix`` ends the names of files."""
        options.setdefault("size", 10_000)
        options.setdefault("within", 5.0)
        self.folder = local_path(folder)
        super().__init__(self.folder.as_uri(), **options)
        self._suffix = suffix

    @property
    def writes(self) -> str:
        """The folder."""
        return str(self.folder)

    async def begin(self, address: Address, context: ConnectContext) -> FolderSession:
        """Find the folder."""
        folder = Path(address.path)
        if not os.path.isdir(folder):  # noqa: ASYNC240, PTH112 - once, and local
            raise BrokerRefused(f"there is no folder {folder}")
        name = f"{context.component}-{context.task_index}"
        return FolderSession(folder, name, self._suffix, self.encode)


class FolderSession:
    """See :class:`~stormlet.connect.session.SinkSession`."""

    def __init__(self, folder: Path, name: str, suffix: str, encode: Callable[..., bytes]) -> None:
        self._folder = folder
        self._name = name
        self._suffix = suffix
        self._encode = encode
        self._numbers = count()

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Write a file."""
        lines = [self._line(item) for item in items]
        good = [each for each in lines if isinstance(each, bytes)]
        if good:
            await asyncio.to_thread(replace, self._next(), b"".join(good))
        return [DONE if isinstance(each, bytes) else each for each in lines]

    def _next(self) -> Path:
        return self._folder / f"{self._name}-{time_ns()}-{next(self._numbers)}{self._suffix}"

    def _line(self, item: Item) -> bytes | Written:
        try:
            body = self._encode(item.value)
        except Exception as error:  # a value without JSON
            return Written(f"{type(error).__name__}: {error}", permanent=True)
        if b"\n" in body:
            return Written("the value has a line end, and would be several lines", permanent=True)
        return body + b"\n"

    async def close(self) -> None:
        """There is nothing to close."""
