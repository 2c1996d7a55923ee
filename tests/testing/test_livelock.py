"""Simulated time that something keeps from passing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

from stormlet import Bolt, Collector, InvalidTopology, Spout, SpoutCollector, Topology, Tuple
from stormlet.testing import Livelock, SimulatedLoop, SimulationFailed, complete, run_simulated, simulate
from tests.cast import Endless, ignore
from tests.helpers import now

LONGEST = 2000


@pytest.fixture(autouse=True)
def _short_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedLoop, "longest_moment", LONGEST)


async def spin(rounds: int) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


def test_a_task_that_spins_is_named() -> None:
    """The busiest first, with the moment at which time stands still; who only waits is not named."""

    async def main() -> None:
        await asyncio.sleep(2.5)
        waiting = asyncio.create_task(asyncio.sleep(1), name="waits")
        briefly = asyncio.create_task(spin(LONGEST - 500), name="spins at first")
        for_ever = asyncio.create_task(spin(10 * LONGEST), name="spins")
        await asyncio.gather(waiting, briefly, for_ever)

    with pytest.raises(Livelock) as raised:
        run_simulated(main())
    error = raised.value
    assert (error.now, error.rounds, list(error.busy)) == (2.5, LONGEST, ["spins", "spins at first"])
    assert str(error).startswith(
        "simulated time stands still at 2.5 s: in 2,000 rounds of the loop there was always something to do, "
        "for spins, spins at first\n  time passes when nothing is ready"
    )


def test_each_moment_has_its_own_rounds() -> None:
    """Where time passes now and then, nothing is wrong, however much is done in all."""

    async def main() -> float:
        for _ in range(5):
            await spin(LONGEST - 10)
            await asyncio.sleep(1)
        return now()

    assert run_simulated(main()) == 5


def test_callbacks_without_a_task() -> None:
    """A callback that calls itself again has no name."""

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_soon(again)

        again()
        await asyncio.sleep(1)

    with pytest.raises(Livelock, match="always something to do, for callbacks"):
        run_simulated(main())


def test_work_in_threads_is_waited_for() -> None:
    """Real time counts as nothing: the loop does not go round while a thread works, however often."""

    async def main() -> None:
        for _ in range(LONGEST // 10):
            await asyncio.to_thread(int)

    run_simulated(main())


class Untracked(Spout[int]):
    """Has always another number, too, and nobody is told of it."""

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)


class Suspended(Spout[int]):
    """Awaits only what is there already."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        await asyncio.sleep(0)
        out.emit(1, message_id=1)


def generator() -> Iterator[int]:
    yield from count()


SOURCES = [Endless, Untracked, Suspended, generator]


def endless(source: object) -> Topology:
    topology = Topology("endless")
    topology.bolt("ignore", ignore, topology.spout("numbers", source).shuffle())
    return topology


@pytest.mark.parametrize("source", SOURCES)
def test_complete_names_the_spout(source: object) -> None:
    """With what to do about it; the time limit would never come."""
    with pytest.raises(Livelock) as raised:
        complete(endless(source))
    text = str(raised.value)
    assert "endless/numbers[0]" in text.splitlines()[0]
    assert "\n  spout 'numbers' has not ended; give it values with sources={'numbers': [...]}\n" in text


@pytest.mark.untraced
@pytest.mark.parametrize("source", SOURCES)
def test_a_simulation_names_the_spout(source: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that never ends is no violation of the law, but wrong use, also where the run is to be stopped."""
    monkeypatch.setattr(SimulatedLoop, "longest_moment", 10 * LONGEST)
    with pytest.raises(InvalidTopology, match="'endless' does not come to an end: simulated time") as raised:
        simulate(endless(source), seeds=[3], seconds=10.0, faults="none")
    assert "spout 'numbers' has not ended" in str(raised.value)


def test_many_messages_of_one_moment_are_no_hang() -> None:
    """As long as they are emitted and settled, a simulated moment may take five times as long."""
    topology = Topology("long", max_spout_pending=1)
    topology.bolt("ignore", ignore, topology.spout("numbers", range(100)).shuffle())
    assert simulate(topology, seeds=range(5), faults="none").counts["acked"] == 500


class Spins(Bolt[int, None]):
    """Never has enough."""

    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        await spin(10 * LONGEST)


def test_a_simulation_that_hangs_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is emitted or settled any more, the source is not to blame; the same seed says the same again."""
    monkeypatch.setattr(SimulatedLoop, "longest_moment", 10 * LONGEST)
    topology = Topology("spins")
    topology.bolt("spins", Spins, topology.spout("numbers", range(3)).shuffle())

    def told() -> list[str]:
        with pytest.raises(SimulationFailed, match="seed 3: it hangs: simulated time stands still") as failed:
            simulate(topology, seeds=[3], faults="none")
        return [*failed.value.result.violations, *failed.value.result.log]

    first = told()
    assert "for spins/spins[0]" in first[0]
    assert first == told()
