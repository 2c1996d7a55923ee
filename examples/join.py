"""Join two streams: an order waits for its payment, or a payment for its order.

A receipt is anchored to both, so it belongs to the trees of both messages: neither is done before the receipt is, and
if anything fails on the way, both come again.

::

    python -m stormlet run examples/join.py
"""

from __future__ import annotations

import msgspec

from stormlet import Bolt, Collector, Topology, Tuple


class Order(msgspec.Struct, frozen=True):
    """What a customer wants."""

    number: int
    item: str


class Payment(msgspec.Struct, frozen=True):
    """What a customer has paid for an order."""

    number: int
    cents: int


class Receipt(msgspec.Struct, frozen=True):
    """An order and its payment."""

    order: Order
    payment: Payment


ORDERS = [Order(1, "lamp"), Order(2, "table"), Order(3, "chair"), Order(4, "carpet")]
PAYMENTS = [Payment(3, 80_00), Payment(1, 35_00), Payment(7, 12_00), Payment(2, 149_00)]


class Join(Bolt[Order | Payment, Receipt]):
    """Holds what came first, until its counterpart comes."""

    def __init__(self) -> None:
        self.waiting: dict[int, Tuple[Order | Payment]] = {}

    def execute(self, tup: Tuple[Order | Payment], out: Collector[Receipt]) -> None:
        """Emit a receipt anchored to both, or hold the input: it stays pending until it is acked or failed."""
        first = self.waiting.setdefault(tup.value.number, tup)
        match first.value, tup.value:
            case (Order() as order, Payment() as payment) | (Payment() as payment, Order() as order):
                del self.waiting[order.number]
                out.emit(Receipt(order, payment), anchors=(first, tup))
                out.ack(first)
                out.ack(tup)
            case _ if first is not tup:  # the same message again, after a timeout: hold the new copy instead
                self.waiting[tup.value.number] = tup
                out.ack(first)
            case _:
                pass

    def finish(self, out: Collector[Receipt]) -> None:
        """No more can come: what still waits has no counterpart."""
        while self.waiting:
            _, tup = self.waiting.popitem()
            out.emit(tup.value, stream="single", anchors=tup)
            out.ack(tup)


def paid(receipt: Receipt) -> None:
    """The end of the stream of receipts."""
    print(f"paid: {receipt.order.item} for {receipt.payment.cents / 100:.2f}")


def single(value: object) -> None:
    """The end of the stream of what could not be joined."""
    print(f"without a counterpart: {value}")


topology = Topology("join")
orders = topology.spout("orders", ORDERS, outputs=Order)
payments = topology.spout("payments", PAYMENTS, outputs=Payment)
receipts = topology.bolt(
    "join",
    Join,
    orders.fields("number"),  # equal numbers to the same task, whichever stream they come from
    payments.fields("number"),
    parallelism=2,
    outputs={"default": Receipt, "single": None},
)
topology.bolt("paid", paid, receipts.global_())  # in one place, also on Spark
topology.bolt("single", single, receipts.named("single").global_())
