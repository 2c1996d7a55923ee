"""Integers that no C type holds mean what they say: as good as no bound, or a mistake with a name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stormlet import DeadLetter, InvalidEmit, Topology
from stormlet.connect.address import Address
from stormlet.connect.session import Delivery, SourceContext
from tests.cast import ignore
from tests.connect.price import BODY, Listed, ListSession
from tests.helpers import run_to_end

HUGE = [2**63 - 1, 2**63, 2**64, 10**30]


@pytest.mark.simulated_time
@pytest.mark.parametrize("bound", HUGE)
@pytest.mark.parametrize(
    "option", ["acker_high_water", "max_attempts", "max_restarts", "max_spout_pending", "queue_capacity"]
)
async def test_bounds_of_a_topology(option: str, bound: int) -> None:
    """Whoever wants no bound may write any number that is large enough."""
    seen: list[int] = []
    topology = Topology("numbers", **{option: bound})
    topology.bolt("seen", seen.append, topology.spout("numbers", range(3)).shuffle())
    await run_to_end(topology)
    assert seen == [0, 1, 2]


@pytest.mark.simulated_time
@pytest.mark.parametrize("bound", HUGE)
async def test_bounds_of_a_component(bound: int) -> None:
    """Those that one spout or one bolt has of its own."""
    seen: list[int] = []
    topology = Topology("numbers")
    numbers = topology.spout("numbers", range(3), max_spout_pending=bound)
    topology.bolt("seen", seen.append, numbers.shuffle(), queue_capacity=bound)
    await run_to_end(topology)
    assert seen == [0, 1, 2]


@pytest.mark.simulated_time
@pytest.mark.parametrize("bound", HUGE)
@pytest.mark.parametrize("option", ["max_buffer_bytes", "max_message_bytes", "max_uncommitted"])
async def test_bounds_of_a_source(option: str, bound: int) -> None:
    """Those that a connector has."""
    seen: list[bytes] = []
    topology = Topology("numbers")
    source = Listed("prefix", 3, **{option: bound})
    topology.bolt("seen", seen.append, topology.spout("numbers", source, outputs=bytes).shuffle())
    await run_to_end(topology)
    assert seen == [BODY] * 3


class Recounted(Listed):
    """A source of messages whose headers say that they have come very often."""

    def __init__(self, times: int) -> None:
        super().__init__("each", 3)
        self.times = times

    async def begin(self, address: Address, context: SourceContext) -> RecountedSession:
        return RecountedSession(self.times, self._count, context)


class RecountedSession(ListSession):
    def __init__(self, times: int, count: int, context: SourceContext) -> None:
        super().__init__("each", count, context)
        self._times = times

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        come = await super().receive(most, within)
        for delivery in come:
            delivery.deliveries = self._times
        return come


@pytest.mark.simulated_time
@pytest.mark.parametrize("times", [*HUGE, -(2**63), -(10**30)])
async def test_deliveries(times: int) -> None:
    """Whoever publishes may write any number into a header, and whoever wants no bound for the attempts, too."""
    seen: list[bytes] = []
    topology = Topology("numbers", max_attempts=2**70)
    source = topology.spout("numbers", Recounted(times), outputs=bytes)
    topology.bolt("seen", seen.append, source.shuffle())
    await run_to_end(topology)
    assert seen == [BODY] * 3


class Elsewhere:
    """Chooses a task that there is not."""

    def prepare(self, targets: object) -> None:
        """They do not matter."""

    def choose(self, value: int) -> list[int]:
        return [value]


@pytest.mark.simulated_time
@pytest.mark.parametrize("task", [*HUGE, -(2**63), -(10**30)])
async def test_tasks(task: int) -> None:
    """A task id that is none is named, however large."""
    letters: list[DeadLetter] = []
    topology = Topology("numbers", max_attempts=1)
    chosen = topology.bolt(
        "choose", lambda number: task, topology.spout("numbers", [1]).shuffle(), outputs=int
    )
    topology.bolt("chosen", ignore, chosen.custom(Elsewhere()))
    await run_to_end(topology, dead_letters=letters.append)
    (letter,) = letters
    assert isinstance(letter.failure.exception, InvalidEmit)
    assert f"chose [{task}]; its tasks are" in str(letter.failure.exception)
