"""Control messages of one root, and a topology with two replicas of each tuple."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from stormlet import FailureKind, Running, Topology
from stormlet.core.acks import Acks
from stormlet.core.ledger import Ledger
from stormlet.core.outcomes import Failure
from stormlet.core.trees import OpenTree
from stormlet.runtime.wire.outbox import Control
from tests.law.puppets import Post, Puppets, intercept

FAILED = Failure(FailureKind.FAILED, "bolt", 1)
ALL_BITS = (1 << 64) - 1


def two_replicas(**options: Any) -> tuple[Topology, Any, Puppets]:
    """A spout that the host feeds and two tasks that each get a copy of everything."""
    topology = Topology("replicas", **options)
    feed = topology.spout("feed")
    puppets = Puppets()
    topology.bolt("puppets", puppets, feed.all(), parallelism=2)
    return topology, feed, puppets


def delay_inits(running: Running, seconds: float) -> None:
    """Have every init arrive so much later than everything else."""

    def handle(post: Post, control: Control) -> None:
        if control.inits:
            asyncio.get_running_loop().call_later(seconds, post, Control(control.inits, Acks(), [], []))
        post(Control([], control.acks, control.fails, control.resets))

    intercept(running, handle)


Message = tuple[str, int]


def send(ledger: Ledger, messages: Iterable[Message], root: int = 7) -> None:
    """Give a ledger inits, acks and fails of one root."""
    for verb, value in messages:
        if verb == "init":
            ledger.init([OpenTree(root=root, checksum=value, spout=0, message_id="message")])
        elif verb == "ack":
            ledger.ack(Acks([(root, value)]))
        else:
            ledger.fail(root, FAILED)


def verdicts(ledger: Ledger) -> list[str]:
    """Those that were given since the last call."""
    acked, failed = ledger.take_verdicts()
    return ["ACK"] * len(acked) + ["FAIL"] * len(failed)
