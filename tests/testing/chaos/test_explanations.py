"""Explanations of topologies that are disturbed: they can be asked for at any time, and account for every tree."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from stormlet import Explanation, Place, Topology, TreeState
from stormlet.model.plan import TaskPlan
from stormlet.runtime.wire.collector import AnyTuple
from stormlet.testing import Faults
from stormlet.testing.chaos.disturbed_run import DisturbedRun
from stormlet.testing.chaos.simulator import Simulator
from tests.testing.chaos.topologies import cycle, everything, reliable, resuming, word_count

NO_MESSAGE_IS_LOST = Faults(kill=0.03, error=0.05, drop=0.0, duplicate=0.0, delay=0.0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[list[Explanation]]:
    """Whenever a bolt is about to execute an input, the oldest trees are explained; here is what is told."""
    caplog.set_level(logging.CRITICAL)
    told: list[Explanation] = []
    executing = DisturbedRun.executing

    def execute_and_ask(self: DisturbedRun, plan: TaskPlan, tup: AnyTuple) -> None:
        executing(self, plan, tup)
        told.extend(self.explain_oldest(5))

    monkeypatch.setattr(DisturbedRun, "executing", execute_and_ask)
    yield told
    told.clear()


@pytest.mark.parametrize("make", [word_count, everything, cycle, resuming, reliable])
def test_every_open_tree_has_a_reason(make: Callable[[], Topology], asked: list[Explanation]) -> None:
    """Whoever dies or raises: of each open tree a tuple is outstanding, or an ack is on its way; and nothing is ever
    nowhere, as long as no control message is lost."""
    simulator = Simulator(make())
    for seed in range(5):
        assert not simulator.run(seed, NO_MESSAGE_IS_LOST, explains=True).violations
    unexplained = [
        each for each in asked if each.state is TreeState.OPEN and not each.outstanding + each.acks
    ]
    assert list(map(str, unexplained)) == []
    places = Counter(each.place for explanation in asked for each in explanation.outstanding)
    assert Place.NOWHERE not in places
    assert {Place.QUEUED, Place.EXECUTING} <= set(places)
    assert all(each.seconds is not None for explanation in asked for each in explanation.outstanding)
