"""The cases that every connector must pass, on a log."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stormlet.connect import files
from stormlet.connect.files.bookmark import Mark
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from tests.connect.conformance import CASES, Bench, Case, name_of

NOT_FOR_ONE_READER = "25_two_runs_share_the_work"
"""A bookmark has one reader."""


class Log(Bench):
    """A tail of a log."""

    name = "tail"
    rules = files.Tail("log", bookmark="mark").capabilities

    def begin(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.log = Path(self._folder.name) / "orders"

    def end(self) -> None:
        self._folder.cleanup()

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def running() -> None:
            await work()

        asyncio.run(running())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def source(self, **options: Any) -> Source[Any]:
        return files.Tail(self.log, bookmark=self.log.with_name("mark"), **{"poll": 0.01, **options})

    def sink(self) -> Sink[bytes]:
        return files.Write[bytes](self._folder.name)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        with self.log.open("ab") as log:
            log.write(body + b"\n")

    async def left(self) -> list[bytes]:
        mark = self.log.with_name("mark")
        marks = msgspec.json.decode(mark.read_bytes(), type=list[Mark]) if mark.exists() else []
        return sorted(self.log.read_bytes()[sum(each.offset for each in marks) :].splitlines())

    async def dead(self) -> list[bytes]:
        return []


@pytest.mark.parametrize("case", [case for case in CASES if name_of(case) != NOT_FOR_ONE_READER], ids=name_of)
def test_conformance(case: Case) -> None:
    """The same cases as the twins."""
    Log().hold(case)
