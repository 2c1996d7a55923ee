"""Acks of one tree that come one after another are one *run*: XORed before they go to the dict (laws L2, F1)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from stormlet.core.ids import shard_of
from stormlet.core.life import IllegalTransition
from stormlet.runtime.wire.outbox import Control, Outbox

pytestmark = pytest.mark.simulated_time

HIGHEST = 2**64 - 1
"""Ids have 64 bits."""


class Acker:
    """Keeps what is posted to it."""

    def __init__(self) -> None:
        self.acks: list[dict[int, int]] = []

    def post(self, control: Control) -> None:
        self.acks.append(control.acks.xored())


def fail(error: Exception) -> None:
    raise error


def outbox_to(ackers: Sequence[Acker]) -> Outbox:
    loop = asyncio.get_running_loop()
    return Outbox(loop, loop.call_soon, [acker.post for acker in ackers], loop.time, fail)


async def test_a_run_is_one_value() -> None:
    """The XOR of its acks, under its root."""
    acker = Acker()
    outbox = outbox_to([acker])
    for edge in (1, 2, HIGHEST):
        outbox.ack(5, edge)
    outbox.flush()
    assert acker.acks == [{5: 1 ^ 2 ^ HIGHEST}]


async def test_another_root_in_between_loses_nothing() -> None:
    """A run that ends and one of the same root that begins later are one value too."""
    acker = Acker()
    outbox = outbox_to([acker])
    for root, edge in ((HIGHEST, 1), (6, 2), (HIGHEST, 4), (6, 8), (7, 16)):
        outbox.ack(root, edge)
    outbox.flush()
    assert acker.acks == [{HIGHEST: 1 ^ 4, 6: 2 ^ 8, 7: 16}]


async def test_equal_roots_need_not_be_the_same_object() -> None:
    """Those that are not begin a run of their own, and are one value all the same."""
    acker = Acker()
    outbox = outbox_to([acker])
    for text in ("123456789", "123456789"):
        outbox.ack(int(text), 1)
    outbox.ack(int("123456789"), 4)
    outbox.flush()
    assert acker.acks == [{123456789: 4}]


async def test_a_flush_ends_the_run() -> None:
    """What was sent is not sent again, and the next ack of the root is a value of its own."""
    acker = Acker()
    outbox = outbox_to([acker])
    outbox.ack(5, 1)
    outbox.flush()
    outbox.flush()
    outbox.ack(5, 2)
    outbox.flush()
    assert acker.acks == [{5: 1}, {5: 2}]


async def test_untracked_tuples_say_nothing() -> None:
    """Their root is 0: it ends no run that is lost, and is sent to nobody."""
    acker = Acker()
    outbox = outbox_to([acker])
    outbox.ack(0, 9)
    outbox.ack(5, 1)
    outbox.ack(0, 9)
    outbox.ack(0, 9)
    outbox.ack(5, 2)
    outbox.flush()
    outbox.ack(0, 9)
    outbox.flush()
    assert acker.acks == [{5: 1 ^ 2}]


async def test_unsent_acks_have_the_run_that_goes_on() -> None:
    """Whoever looks at them changes nothing in what is sent."""
    acker = Acker()
    outbox = outbox_to([acker])
    outbox.ack(5, 1)
    outbox.ack(6, 2)
    assert dict(outbox.unsent_acks) == {5: 1, 6: 2}
    outbox.ack(6, 4)
    assert dict(outbox.unsent_acks) == {5: 1, 6: 2 ^ 4}
    outbox.flush()
    assert dict(outbox.unsent_acks) == {}
    assert acker.acks == [{5: 1, 6: 2 ^ 4}]


async def test_a_run_leaves_at_the_end_of_its_slice() -> None:
    """Or, outside of one, by the flush that was asked for."""
    acker = Acker()
    outbox = outbox_to([acker])
    outbox.enter()
    outbox.ack(5, 1)
    outbox.leave()
    assert acker.acks == [{5: 1}]
    outbox.ack(5, 2)
    outbox.arm()
    assert acker.acks == [{5: 1}]
    await asyncio.sleep(0)
    assert acker.acks == [{5: 1}, {5: 2}]


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_each_acker_gets_the_runs_of_its_shard(count: int) -> None:
    """Of many acks of some trees in any order, each acker gets its trees' XORs, and no others (law L6)."""
    random = Random(count)
    roots = [random.getrandbits(64) for _ in range(20)]
    ackers = [Acker() for _ in range(count)]
    outbox = outbox_to(ackers)
    expected = [dict[int, int]() for _ in range(count)]
    for _ in range(500):
        root, edge = random.choice(roots), random.getrandbits(64)
        of_shard = expected[shard_of(root, count)]
        of_shard[root] = of_shard.get(root, 0) ^ edge
        outbox.ack(root, edge)
    outbox.flush()
    assert [acker.acks for acker in ackers] == [[each] for each in expected]


async def test_an_acker_without_acks_gets_nothing() -> None:
    """One of two is asked for nothing where all trees are the other's."""
    ackers = [Acker(), Acker()]
    outbox = outbox_to(ackers)
    root = next(root for root in range(1, 100) if shard_of(root, 2) == 1)
    outbox.ack(root, 3)
    outbox.flush()
    assert [acker.acks for acker in ackers] == [[], [{root: 3}]]


async def test_an_outbox_is_armed_once() -> None:
    """A flush that is certain to come is not scheduled again: such a move is a fault of the engine's."""
    outbox = outbox_to([Acker()])
    outbox.arm()
    with pytest.raises(IllegalTransition, match="an outbox cannot make this move when it is ARMED"):
        outbox.arm()
