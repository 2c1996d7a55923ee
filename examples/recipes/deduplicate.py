"""Do something once per id although messages are delivered at least once.

Duplicates come from the source and from replays. ``Once`` remembers the result of each id, within a window of the last
so many, and equal ids go to the same task. A duplicate gets the remembered result, which is emitted again: downstream
may never have seen it. A duplicate of what is still under way waits for it, and does it itself if the first one fails.

Guaranteed: within the window, and as long as the process lives, no id is charged again after its charge has
succeeded. Beyond that, the effect itself must be idempotent.

::

    python -m stormlet run examples/recipes/deduplicate.py
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from stormlet import BasicBolt, Collector, Topology, Tuple


class Payment(msgspec.Struct, frozen=True):
    """What is to be charged; the same id is the same payment."""

    id: str
    cents: int


PAYMENTS = [Payment("a", 35_00), Payment("b", 149_00), Payment("a", 35_00), Payment("c", 80_00)] * 2

Charge = Callable[[Payment], Awaitable[str]]


class Once(BasicBolt[Payment, str]):
    """Charges each payment once, and emits its receipt for every duplicate too."""

    def __init__(self, charge: Charge, window: int = 10_000) -> None:
        self.charge = charge
        self.window = window
        self.receipts = OrderedDict[str, str]()
        self.under_way: dict[str, asyncio.Event] = {}

    async def execute(self, tup: Tuple[Payment], out: Collector[str]) -> None:
        """Charge, unless it was done before."""
        payment = tup.value
        while (first := self.under_way.get(payment.id)) is not None:
            await first.wait()
        if payment.id not in self.receipts:
            await self.charge_first(payment)
        self.receipts.move_to_end(payment.id)
        out.emit(self.receipts[payment.id])

    async def charge_first(self, payment: Payment) -> None:
        """Charge, let duplicates wait meanwhile, and remember the receipt if it succeeds."""
        over = self.under_way[payment.id] = asyncio.Event()
        try:
            self.receipts[payment.id] = await self.charge(payment)
        finally:
            del self.under_way[payment.id]
            over.set()
        if len(self.receipts) > self.window:
            self.receipts.popitem(last=False)


async def charge(payment: Payment) -> str:
    """The effect that must not happen twice."""
    print(f"charging {payment.id}: {payment.cents / 100:.2f}")
    await asyncio.sleep(0.01)
    return f"receipt of {payment.id}"


def deduplicated(charge: Charge = charge, window: int = 10_000) -> Topology:
    """Charge each payment once and print a receipt for every message."""
    topology = Topology("deduplicate")
    payments = topology.spout("payments", PAYMENTS, outputs=Payment)
    receipts = topology.bolt(
        "charge", partial(Once, charge, window), payments.fields("id"), parallelism=2, concurrency=10
    )
    topology.bolt("print", print, receipts.global_())
    return topology
