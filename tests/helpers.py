"""Small pieces that tests of whole topologies are built from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from stormlet import Running, Topology, is_compiled
from stormlet.testing import SimulatedLoop
from tests.cast import Counting as Counting
from tests.cast import ignore as ignore

interpreted_only = pytest.mark.skipif(
    is_compiled(), reason="the classes of compiled modules cannot be broken"
)


def now() -> float:
    """The time of the running loop, in seconds."""
    return asyncio.get_running_loop().time()


def block(seconds: float) -> None:
    """Take so many seconds of the running loop's time at once, as code that blocks it does."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    loop._clock.now += seconds  # pyright: ignore[reportPrivateUsage] - nobody else can make simulated time lag


def law_broken(text: str, *values: object) -> NoReturn:
    """Fail the test with what an oracle says is wrong."""
    raise AssertionError(text.format(*values))


class RefusingKey:
    """A key function that raises at each replay, so many times in all; the first call is the first emit of the only
    message."""

    def __init__(self, times: float) -> None:
        self.calls = 0
        self._times = times

    def __call__(self, value: object) -> object:
        self.calls += 1
        if 1 < self.calls <= 1 + self._times:
            raise ZeroDivisionError(value)
        return value


async def run_to_end(topology: Topology, **options: Any) -> Running:
    """Run until everything is settled, and leave."""
    async with topology.run(**options) as running:
        await running.finished()
    return running


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait in real time until this is so; a machine that has other things to do may take long."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


async def leave_by(error: BaseException, topology: Topology, after: float = 1.0, **options: Any) -> None:
    """Run for some seconds, and leave the block by an exception."""
    async with topology.run(**options):
        await asyncio.sleep(after)
        raise error
