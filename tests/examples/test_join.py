"""The example of a join."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stormlet import Topology
from stormlet.loading import load_topology
from tests.examples.runs import RunExample

PAID = ["paid: chair for 80.00", "paid: lamp for 35.00", "paid: table for 149.00"]
SINGLE = [
    "without a counterpart: Order(number=4, item='carpet')",
    "without a counterpart: Payment(number=7, cents=1200)",
]


def test_pairs_are_joined_and_the_rest_is_reported(run_example: RunExample) -> None:
    """Three orders meet their payments, an order and a payment stay alone, and all messages are acked."""
    outcome = run_example("join.py")
    assert sorted(outcome.lines) == [*PAID, *SINGLE]
    assert outcome.acked("orders") == outcome.acked("payments") == ("4", "4", "0")
    assert outcome.code == 0


@pytest.mark.simulated_time
async def test_both_messages_come_again_when_their_receipt_fails(examples: Path) -> None:
    """A receipt belongs to both trees: its failure replays the order and the payment, and they are joined anew."""
    load_topology(str(examples / "join.py"), {})
    module = sys.modules["join"]
    receipts: list[object] = []

    def fail_once(receipt: object) -> None:
        receipts.append(receipt)
        if len(receipts) == 1:
            raise OSError("the printer is out of paper")

    topology = Topology("join")
    orders = topology.spout("orders", module.ORDERS[:1])
    payments = topology.spout("payments", module.PAYMENTS[1:2])
    joined = topology.bolt("join", module.Join, orders.global_(), payments.global_())
    topology.bolt("print", fail_once, joined.shuffle())
    async with topology.run(seed=1) as running:
        await running.finished()
    spouts = [running.statistics().components[name] for name in ("orders", "payments")]
    assert [(each.failed, each.replayed, each.acked) for each in spouts] == [(1, 1, 1), (1, 1, 1)]
    assert receipts == [module.Receipt(module.ORDERS[0], module.PAYMENTS[1])] * 2
