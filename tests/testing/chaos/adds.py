"""Bolts that lose updates between reading and writing, each in another place."""

from __future__ import annotations

import asyncio
from functools import partial

from stormlet import BasicBolt, Collector, Topology, Tuple
from tests.testing.chaos.sound_bolts import around

TOTALS = {"all": 0}


def to_a_closure() -> Topology:
    total = 0

    async def add(number: int) -> None:
        nonlocal total
        before = total
        await asyncio.sleep(0.01)
        total = before + number

    return around(add, concurrency=4)


def to_a_global() -> Topology:
    async def add(number: int) -> None:
        before = TOTALS["all"]
        await asyncio.sleep(0)
        TOTALS["all"] = before + number

    return around(add, concurrency=4)


class Account:
    """A service of the user's."""

    def __init__(self) -> None:
        self.balance = 0

    async def change(self, amount: int) -> None:
        """Add it, slowly."""
        before = self.balance
        await asyncio.sleep(0.01)
        self.balance = before + amount


def to_an_object() -> Topology:
    account = Account()

    async def add(number: int) -> None:
        await account.change(number)

    return around(add, concurrency=4)


def between_tasks() -> Topology:
    class Adds(BasicBolt[int, None]):
        def __init__(self, totals: dict[str, int]) -> None:
            self.totals = totals

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            before = self.totals["all"]
            await asyncio.sleep(0.01)
            self.totals["all"] = before + tup.value

    return around(partial(Adds, {"all": 0}), parallelism=3)


def to_a_list() -> Topology:
    class Adds(BasicBolt[int, None]):
        def __init__(self) -> None:
            self.seen: list[int] = []

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            before = self.seen
            await asyncio.sleep(0.01)
            self.seen = [*before, tup.value]

    return around(Adds, concurrency=4)
