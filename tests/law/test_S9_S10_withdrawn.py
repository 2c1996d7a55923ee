"""Messages that a spout withdraws, and its drain (law S9, S10)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stormlet import (
    DeadLetter,
    Failure,
    FailureKind,
    Reject,
    ReliableSpout,
    Running,
    Spout,
    SpoutCollector,
    StartFailed,
    TaskContext,
    Topology,
    TopologyCrashed,
)
from stormlet.testing import Simulation
from tests.cast import Hold, ignore, raise_value_error
from tests.law.cancelled import conserved


class Owner(ReliableSpout[int]):
    """Emits values under their own ids, and notes what it hears."""

    def __init__(self, values: Sequence[int], *, buries: bool = True) -> None:
        self.values = list(values)
        self.buries = buries
        self.heard: list[object] = []
        self.attempts: list[int] | int = 1

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        values, self.values = self.values, []
        out.emit_many(values, message_ids=values, attempt=self.attempts if values else 1)

    def ack(self, message_id: object) -> None:
        self.heard.append(("ack", message_id))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.heard.append((failure.kind, message_id))

    def drain(self) -> None:
        self.heard.append("drain")

    def close(self) -> None:
        self.heard.append("close")


def owned(owner: Owner, bolt: object, **options: object) -> Topology:
    topology = Topology("owned", **options)  # type: ignore[arg-type]
    topology.bolt("bolt", bolt, topology.spout("spout", lambda: owner).shuffle())  # type: ignore[arg-type, call-overload]
    return topology


def counts(running: Running) -> tuple[int, int, int, int]:
    spout = running.statistics().components["spout"]
    return spout.withdrawn, spout.acked, spout.replayed, spout.dead_letters


@pytest.mark.simulated_time
async def test_S9_a_withdrawn_message_that_fails_is_neither_replayed_nor_buried(sim: Simulation) -> None:
    """Its tree goes on to its end, of which nobody hears."""
    owner, hold = Owner([1, 2]), Hold()
    async with owned(owner, lambda: hold, message_timeout=4.0).run() as running:
        await sim.settled()
        owner.out.withdraw([1])
        assert counts(running)[0] == 0
        assert running.health().pending == 2
        await sim.advance(seconds=7)
        assert counts(running)[:2] == (1, 0)
        running.stop()
        await sim.advance(minutes=10)
        assert conserved(running)
    assert not any(each in owner.heard for each in (("ack", 1), (FailureKind.TIMEOUT, 1)))


@pytest.mark.simulated_time
async def test_S9_a_withdrawn_message_that_is_acked_is_withdrawn(sim: Simulation) -> None:
    """The broker must not hear of it."""
    owner, hold = Owner([1, 2]), Hold()
    async with owned(owner, lambda: hold).run() as running:
        await sim.settled()
        owner.out.withdraw([1])
        hold.ack()
        await sim.settled()
        assert (counts(running), owner.heard) == ((1, 1, 0, 0), [("ack", 2)])
        assert conserved(running)


@pytest.mark.simulated_time
async def test_S9_one_that_waits_for_its_replay_is_over_at_once(sim: Simulation) -> None:
    """And so is what waits for room, or for everything to be settled."""
    owner = Owner([1, 2])
    async with owned(owner, raise_value_error, replay_delay=5.0).run() as running:
        await sim.settled()
        owner.out.withdraw([1])
        assert (counts(running), running.health().pending) == ((1, 0, 0, 0), 1)
        await sim.advance(seconds=20)
        assert running.statistics().components["spout"].replayed > 0
        running.stop()
        await sim.advance(minutes=10)
        assert (counts(running)[0], conserved(running)) == (1, True)


@pytest.mark.simulated_time
async def test_S9_all_of_one_id_that_wait_for_replays_are_over(sim: Simulation) -> None:
    """The message of an instance that has died has come again to the next one."""
    owner = Owner([1, 1])
    async with owned(owner, raise_value_error, replay_delay=5.0).run() as running:
        await sim.settled()
        owner.out.withdraw([1])
        assert (counts(running), running.health().pending) == ((2, 0, 0, 0), 0)


@pytest.mark.simulated_time
async def test_S9_a_letter_that_is_being_handed_over_stays_one(sim: Simulation) -> None:
    """Its sink has it by then, and the spout hears nothing."""
    owner = Owner([1])

    async def sink(letter: DeadLetter) -> None:
        owner.out.withdraw([letter.message_id])

    def reject(value: int) -> None:
        raise Reject("never")

    async with owned(owner, reject).run(dead_letters=sink) as running:
        await sim.settled()
        assert (counts(running), owner.heard) == ((0, 0, 0, 1), [])
        assert conserved(running)


@pytest.mark.simulated_time
async def test_S9_what_is_withdrawn_and_open_at_the_deadline_is_not_left_over(sim: Simulation) -> None:
    """It is somebody else's, and no dead letter either."""
    owner, hold, letters = Owner([1, 2]), Hold(), list[DeadLetter]()
    block = owned(owner, lambda: hold, drain_timeout=1.0, message_timeout=None).run(
        dead_letters=letters.append
    )
    async with block as running:
        await sim.settled()
        owner.out.withdraw([1])
    statistics = running.statistics()
    assert (counts(running)[0], statistics.left_over) == (1, 1)
    assert [letter.message_id for letter in letters] == [2]
    assert conserved(running)


@pytest.mark.simulated_time
async def test_S9_only_what_the_engine_keeps_can_be_withdrawn(sim: Simulation) -> None:
    """A plain ``Spout`` replays nothing, so that there is nothing to stop."""

    class Plain(Spout[int]):
        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            out.withdraw([1])

        def next_tuple(self, out: SpoutCollector[int]) -> None: ...

    topology = Topology("plain")
    topology.bolt("bolt", ignore, topology.spout("spout", Plain).shuffle())
    with pytest.raises(StartFailed, match=r"spout\[0\] withdraws .*derive from ReliableSpout"):
        async with topology.run():
            pass


@pytest.mark.simulated_time
async def test_S10_a_spout_is_asked_to_drain_before_its_last_outcomes(sim: Simulation) -> None:
    """Once; then come the outcomes, and ``close`` is last."""
    owner, hold = Owner([1]), Hold()
    async with owned(owner, lambda: hold).run() as running:
        await sim.settled()
        running.stop()
        await sim.settled()
        hold.ack()
    assert owner.heard[0] == "drain"
    assert owner.heard[-1] == "close"
    assert owner.heard.count("drain") == 1


@pytest.mark.simulated_time
async def test_S10_an_exception_in_drain_is_one_of_user_code(sim: Simulation) -> None:
    """The task dies, and its messages go on with the next instance."""

    class Broken(Owner):
        def drain(self) -> None:
            raise ValueError("drain")

    with pytest.raises(TopologyCrashed, match="drain of spout"):
        async with owned(Broken([1]), ignore, max_restarts=0).run():
            await sim.settled()


@pytest.mark.simulated_time
async def test_S9_each_of_many_has_an_attempt_of_its_own(sim: Simulation) -> None:
    """As a broker counts deliveries for each message."""
    owner, hold = Owner([1, 2, 3]), Hold()
    owner.attempts = [1, 4, 2]
    async with owned(owner, lambda: hold).run():
        await sim.settled()
        seen = [(tup.value, tup.attempt) for tup in hold.held]
        hold.ack()
    assert seen == [(1, 1), (2, 4), (3, 2)]
