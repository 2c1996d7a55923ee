"""The recipe of a broker that redelivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from examples.recipes import broker as recipe
from examples.recipes.broker import Broker, Channel, Delivery, consume
from stormlet import TopologyCrashed
from tests.examples.runs import RunExample
from tests.helpers import leave_by, run_to_end


def test_it_charges_and_gives_up_as_it_says(run_example: RunExample) -> None:
    """Orders are charged at their first or second delivery, two are dead letters of the broker, none is left."""
    outcome = run_example("recipes/broker.py")
    assert sorted(outcome.lines[:-1]) == [
        "charged: carpet (delivery 1)",
        "charged: lamp (delivery 2)",
        "charged: second lamp (delivery 2)",
        "charged: table (delivery 1)",
    ]
    assert outcome.lines[-1] == "acked 4, left 0, dead ['gift', 'chair for nobody']"
    assert outcome.code == 0


@pytest.mark.simulated_time
async def test_what_is_rejected_is_not_delivered_again() -> None:
    """What no redelivery can help is a dead letter of the broker after one delivery, what may help after three."""
    broker = Broker(["gift", "chair for nobody"])
    running = await run_to_end(consume(broker), seed=1)
    assert broker.dead_letters == ["gift", "chair for nobody"]
    assert running.statistics().components["orders"].emitted == 1 + 3


def failing(seldom: int, charged: list[Delivery]) -> Callable[[Delivery], str]:
    """Charges, but every so many calls it fails after it has charged."""

    def charge(delivery: Delivery) -> str:
        charged.append(delivery)
        if len(charged) % seldom == 0:
            raise ConnectionError("no answer")
        return delivery.body

    return charge


@pytest.mark.simulated_time
async def test_nothing_is_lost_when_bolts_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 500 orders is acked once, or dead after three deliveries, and what was charged before says so."""
    charged: list[Delivery] = []
    monkeypatch.setattr(recipe, "charge", failing(3, charged))
    orders = [str(number) for number in range(500)]
    broker = Broker(orders)
    await run_to_end(consume(broker), seed=1)
    assert sorted(broker.acked + broker.dead_letters) == sorted(orders)
    assert broker.dead_letters
    assert not broker.ready
    first = [delivery.body for delivery in charged if not delivery.redelivered]
    assert sorted(first) == sorted(orders)
    for body in broker.dead_letters:
        assert [each.number for each in charged if each.body == body] == [1, 2, 3]


@pytest.mark.simulated_time
async def test_no_more_is_under_way_than_the_prefetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the bolt waits, the broker has handed out max_spout_pending deliveries and not one more."""
    broker, handed_out = Broker(map(str, range(100))), list[int]()

    async def charge(delivery: Delivery) -> str:
        handed_out.append(100 - len(broker.ready) - len(broker.acked))
        await asyncio.sleep(1)
        return delivery.body

    monkeypatch.setattr(recipe, "charge", charge)
    await run_to_end(consume(broker), seed=1)
    assert max(handed_out) == 10
    assert len(broker.acked) == 100


@pytest.mark.simulated_time
async def test_what_a_broken_run_has_not_acked_is_delivered_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that ends by an exception acks nothing it has not finished, and the next run gets all of that."""
    broker = Broker(map(str, range(30)))

    async def slow(delivery: Delivery) -> str:
        await asyncio.sleep(1)
        return delivery.body

    monkeypatch.setattr(recipe, "charge", slow)
    with pytest.raises(KeyError):
        await leave_by(KeyError(), consume(broker), after=3.5)
    assert (len(broker.acked), len(broker.ready)) == (6, 24)
    await run_to_end(consume(broker))
    assert sorted(broker.acked, key=int) == [str(number) for number in range(30)]
    assert broker.dead_letters == []


@pytest.mark.simulated_time
async def test_what_a_cancelled_read_took_is_there_again_after_the_close() -> None:
    """Not before, as over a network: nobody has it, and nobody can ack it."""
    broker = Broker(["first"])
    channel = Channel(broker, prefetch=1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(channel.get(), recipe.LATENCY / 2)
    assert (len(broker.ready), len(channel.unacked)) == (0, 1)
    channel.close()
    assert (len(broker.ready), len(channel.unacked)) == (1, 0)


@pytest.mark.simulated_time
async def test_no_more_is_read_than_the_prefetch() -> None:
    """A channel whose prefetch is used up leaves messages at the broker until one is settled."""
    broker = Broker(["first", "second"])
    channel = Channel(broker, prefetch=1)
    first = await channel.get()
    assert first is not None
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(channel.get(), 1)
    assert len(broker.ready) == 1
    channel.nack(first.tag, requeue=True)
    second = await channel.get()
    assert second is not None
    assert (second.body, second.redelivered) == ("second", False)


@pytest.mark.simulated_time
async def test_a_spout_that_dies_has_its_messages_delivered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its successor gets a channel of its own, and hears of deliveries that this channel does not know."""
    broker = Broker(map(str, range(30)))

    async def slow(delivery: Delivery) -> str:
        await asyncio.sleep(1)
        return delivery.body

    monkeypatch.setattr(recipe, "charge", slow)
    async with consume(broker).run() as running:
        await asyncio.sleep(3.5)
        running.kill("orders")
        await running.finished()
    assert sorted(set(broker.acked), key=int) == [str(number) for number in range(30)]
    assert (broker.dead_letters, list(broker.ready)) == ([], [])


@pytest.mark.simulated_time
async def test_a_read_that_fails_reaches_the_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends the reader is raised by next_tuple, so that the task is restarted or the topology crashes."""

    async def refused(channel: Channel) -> Delivery:
        raise ConnectionError("the broker is gone")

    monkeypatch.setattr(Channel, "get", refused)
    with pytest.raises(TopologyCrashed, match="next_tuple of orders\\[0\\] raised ConnectionError"):
        await run_to_end(consume(Broker(["lamp"])))
