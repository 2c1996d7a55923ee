"""What becomes of messages that fail: replays after growing pauses, and dead letters.

::

    python -m stormlet run examples/replay.py

One order is paid at once; one at the third attempt, as the bank does not answer before. One can never be paid: it is
rejected and not tried again. One is given up after four attempts. The last two are dead letters, so the exit code is 1.
"""

from __future__ import annotations

import asyncio

import msgspec

from stormlet import BasicBolt, Collector, Reject, Topology, Tuple


class Order(msgspec.Struct, frozen=True):
    """What is to be paid."""

    item: str
    cents: int
    answered: int
    """The attempt at which the bank answers."""


ORDERS = [
    Order("lamp", 35_00, answered=1),
    Order("table", 149_00, answered=3),
    Order("voucher", -10_00, answered=1),
    Order("carpet", 210_00, answered=99),
]


class Charge(BasicBolt[Order, str]):
    """Charges for orders. An exception fails the message, and the spout emits it again after a pause."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()

    def execute(self, tup: Tuple[Order], out: Collector[str]) -> None:
        """Charge for one order, if there is anything to pay and the bank answers."""
        order = tup.value
        print(f"{self.loop.time() - self.began:4.1f} s  {order.item}, attempt {tup.attempt}")
        if order.cents <= 0:
            raise Reject("nothing to pay")
        if tup.attempt < order.answered:
            raise ConnectionError("the bank does not answer")
        out.emit(f"paid: {order.item}")


topology = Topology("replay", max_attempts=4, replay_delay=0.2)
orders = topology.spout("orders", ORDERS)
paid = topology.bolt("charge", Charge, orders.shuffle())
topology.bolt("print", print, paid.global_())
