"""The recipe of a connector for a broker that redelivers."""

from __future__ import annotations

import asyncio

import pytest

from examples.recipes import broker as recipe
from examples.recipes.broker import Broker, Charge, consume
from stormlet import Collector, TopologyCrashed, Tuple
from tests.examples.runs import RunExample
from tests.helpers import run_to_end


def test_it_charges_and_gives_up_as_it_says(run_example: RunExample) -> None:
    """Orders are charged at their first or second attempt, two are dead letters of the broker, none is left."""
    outcome = run_example("recipes/broker.py")
    assert sorted(outcome.lines[:-1]) == [
        "charged: carpet (attempt 1)",
        "charged: lamp (attempt 2)",
        "charged: second lamp (attempt 2)",
        "charged: table (attempt 1)",
    ]
    assert outcome.lines[-1] == "acked 4, left 0, dead ['gift', 'chair for nobody']"
    assert outcome.code == 0


@pytest.mark.simulated_time
async def test_what_is_rejected_is_tried_once() -> None:
    """What no attempt can help is a dead letter of the broker after one, what may help after five."""
    broker = Broker(["gift", "chair for nobody"])
    running = await run_to_end(consume(broker), seed=1)
    assert broker.dead_letters == ["gift", "chair for nobody"]
    counts = running.statistics().components["orders"]
    assert (counts.messages, counts.failed, counts.dead_letters) == (2, 1 + 5, 0)


@pytest.mark.simulated_time
async def test_nothing_is_lost_when_bolts_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 500 orders is acked once, or dead after five attempts."""
    calls = 0

    class Failing(Charge):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            nonlocal calls
            calls += 1
            if calls % 2:
                raise ConnectionError("no answer")

    monkeypatch.setattr(recipe, "Charge", Failing)
    orders = [str(number) for number in range(500)]
    broker = Broker(orders)
    await run_to_end(consume(broker), seed=1)
    assert sorted(broker.acked + broker.dead_letters) == sorted(orders)
    assert broker.dead_letters
    assert not broker.ready


@pytest.mark.simulated_time
async def test_no_more_is_under_way_than_the_prefetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the bolt waits, the broker has handed out max_spout_pending deliveries and not one more."""
    broker, handed_out = Broker(map(str, range(100))), list[int]()

    class Slow(Charge):
        async def execute(self, tup: Tuple[str], out: Collector[str]) -> None:  # type: ignore[override]
            handed_out.append(100 - len(broker.ready) - len(broker.acked))
            await asyncio.sleep(1)

    monkeypatch.setattr(recipe, "Charge", Slow)
    await run_to_end(consume(broker), seed=1)
    assert max(handed_out) <= 20
    assert len(broker.acked) == 100


@pytest.mark.simulated_time
async def test_what_was_not_acked_is_the_brokers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it was emitted or only read, when the topology crashes."""

    class Broken(Charge):
        def tick(self, out: Collector[str]) -> None:
            raise ValueError("broken")

        async def execute(self, tup: Tuple[str], out: Collector[str]) -> None:  # type: ignore[override]
            await asyncio.sleep(100)

    monkeypatch.setattr(recipe, "Charge", Broken)
    broker = Broker(map(str, range(50)))
    with pytest.raises(TopologyCrashed):
        await run_to_end(consume(broker), seed=1, tick=1.0, max_restarts=0)
    assert sorted(int(body) for body, _ in broker.ready) == list(range(50))
    monkeypatch.undo()
    await run_to_end(consume(broker))
    assert sorted(map(int, broker.acked)) == list(range(50))
