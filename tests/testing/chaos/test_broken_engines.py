"""The tester tested: an engine that is broken in one place, and a simulation that sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stormlet.core import progress
from stormlet.core.ledger import Ledger, OpenTree
from stormlet.core.outcomes import DeadLetter, Failure
from stormlet.core.progress import Step
from stormlet.core.tuples import Lineage, Tuple
from stormlet.runtime import conductor
from stormlet.runtime.ackers import AckerTask
from stormlet.runtime.bolts import BoltTask
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.feeds import SpoutFeed
from stormlet.runtime.function_worker import FunctionWorker
from stormlet.runtime.outbox import Outbox
from stormlet.runtime.outlets import Delivery, Target
from stormlet.runtime.tracker import Tracker
from stormlet.testing import Faults, SimulationFailed, simulate
from tests.helpers import interpreted_only
from tests.testing.chaos.topologies import everything, word_count

Patch = pytest.MonkeyPatch


def one_edge_for_all_replicas(patch: Patch) -> None:
    """FsShelter's D4 (law L1)."""
    edges: dict[tuple[int, int], int] = {}

    def deliver_one(self: Any, target: Target, value: object, root: int, lineage: Lineage) -> int:
        edge = edges.setdefault((root, id(value)), next(self._ids)) if root else 0
        self._append(target, Tuple(value, self.source, lineage, root, edge))
        return edge

    patch.setattr(Delivery, "deliver_one", deliver_one)


def the_child_is_registered_too_late(patch: Patch) -> None:
    """An input is acked before what is anchored to it has joined the tree (law L2)."""
    emits_more = FunctionWorker._emits_more

    def patched(self: Any, tup: Any, result: object, deliver: Any) -> bool:
        own = tup.edge
        if tup.root:
            self.outbox.acks[tup.root] ^= own
            self.outbox.flush()
        more = emits_more(self, tup, result, deliver)
        tup.edge ^= own
        return more

    patch.setattr(FunctionWorker, "_emits_more", patched)


def entries_are_dropped_by_a_rotation(patch: Patch) -> None:
    """A tree that times out is forgotten (law L12)."""

    def rotate(self: Any) -> None:
        self._trees.rotate()
        self.forget_orphans()

    patch.setattr(Ledger, "rotate", rotate)


def verdicts_go_to_the_first_spout(patch: Patch) -> None:
    """Law S1."""
    init = Ledger.init

    def patched(self: Any, inits: Mapping[int, OpenTree]) -> None:
        for tree in inits.values():
            tree.spout = 0
        init(self, inits)

    patch.setattr(Ledger, "init", patched)


def unsent_acks_die_with_the_task(patch: Patch) -> None:
    """Law F1."""
    lose = BoltTask.lose

    async def patched(self: Any, error: Exception) -> None:
        self.outbox.acks.clear()
        await lose(self, error)

    patch.setattr(BoltTask, "lose", patched)


def what_a_dead_task_held_is_forgotten(patch: Patch) -> None:
    """Nothing fails with TASK_LOST, so that messages wait for their timeout (law L14)."""
    lose = BoltTask.lose

    async def patched(self: Any, error: Exception) -> None:
        self._handed = list
        await lose(self, error)
        del self._handed

    patch.setattr(BoltTask, "lose", patched)


def replays_are_not_pending(patch: Patch) -> None:
    """Law S3."""
    later, replay = Tracker._replay_later, Tracker._replay

    def replay_later(self: Any, message: Any) -> None:
        self.pending -= 1
        later(self, message)

    def replayed(self: Any, message: Any) -> None:
        self.pending += 1
        replay(self, message)

    patch.setattr(Tracker, "_replay_later", replay_later)
    patch.setattr(Tracker, "_replay", replayed)


def finish_goes_downstream_first(patch: Patch) -> None:
    """Law C2."""

    def next_step(calm: Any, order: Any) -> tuple[Step, Any]:
        return progress.next_step(calm, list(reversed(order)))

    patch.setattr(conductor, "next_step", next_step)


def outcomes_are_delivered_twice(patch: Patch) -> None:
    """Law L4, L15."""
    give = AckerTask._give_verdicts

    def patched(self: Any) -> None:
        again = list(self.ledger.acked)
        give(self)
        for tree in again[:1]:
            self.spouts[tree.spout].outcomes.append(tree)

    patch.setattr(AckerTask, "_give_verdicts", patched)


def fails_are_forgotten(patch: Patch) -> None:
    """A fail has no effect (law L4)."""

    def fail(self: Any, root: int, failure: Failure) -> None:
        self.ack({root: 0})

    patch.setattr(Ledger, "fail", fail)


def nobody_waits_for_room(patch: Patch) -> None:
    """Law B6."""

    async def room(self: Any) -> None:
        self.crowded.clear()

    patch.setattr(Outbox, "room", room)


def messages_of_a_dead_acker_wait(patch: Patch) -> None:
    """Its trees are forgotten instead of failed."""

    async def lose(self: Any, error: Exception) -> None:
        self.ledger = Ledger()

    patch.setattr(AckerTask, "lose", lose)


def failed_messages_are_dropped(patch: Patch) -> None:
    """Law S6."""

    def replay_later(self: Any, message: Any) -> None:
        self.pending -= 1

    patch.setattr(Tracker, "_replay_later", replay_later)


def outcomes_are_told_twice(patch: Patch) -> None:
    """Law S1, L15."""
    settle = SpoutFeed._settle

    def twice(self: Any, message_id: object, failure: Failure | None) -> Any:
        settle(self, message_id, failure)
        return settle(self, message_id, failure)

    patch.setattr(SpoutFeed, "_settle", twice)


def everything_is_told_as_acked(patch: Patch) -> None:
    """Law S1."""
    settle = SpoutFeed._settle

    def acked(self: Any, message_id: object, failure: Failure | None) -> Any:
        return settle(self, message_id, None)

    patch.setattr(SpoutFeed, "_settle", acked)


def nothing_is_told(patch: Patch) -> None:
    """Law S1."""

    def silent(self: Any, message_id: object, failure: Failure | None) -> None:
        self._spout.waiting.discard(message_id)

    patch.setattr(SpoutFeed, "_settle", silent)


def dead_letters_are_thrown_away(patch: Patch) -> None:
    """Law S6."""
    patch.setattr(DeadLetters, "bury", lambda *_: None)


def dead_letters_come_twice(patch: Patch) -> None:
    """Law S6."""
    bury = DeadLetters.bury

    def twice(self: Any, plan: Any, letter: Any) -> Any:
        bury(self, plan, letter)
        return bury(self, plan, letter)

    patch.setattr(DeadLetters, "bury", twice)


def rotations_are_rare(patch: Patch) -> None:
    """Law L12."""
    rotate_soon, asked = AckerTask.rotate_soon, Counter[int]()

    def rotate_seldom(self: Any) -> None:
        asked[self.plan.task] += 1
        if asked[self.plan.task] % 3 == 0:
            rotate_soon(self)

    patch.setattr(AckerTask, "rotate_soon", rotate_seldom)


BREAKS = {
    one_edge_for_all_replicas: "was acked although",
    the_child_is_registered_too_late: "was acked although",
    entries_are_dropped_by_a_rotation: "it has not finished",
    verdicts_go_to_the_first_spout: "was told to numbers[0]",
    unsent_acks_die_with_the_task: "timed out although nobody had a tuple of it",
    what_a_dead_task_held_is_forgotten: "timed out although nobody had a tuple of it",
    replays_are_not_pending: "pending messages, and there are",
    finish_goes_downstream_first: "finishes before",
    outcomes_are_delivered_twice: "was told a second outcome",
    fails_are_forgotten: "timed out although nobody had a tuple of it",
    nobody_waits_for_room: "tuples, with a capacity of",
    messages_of_a_dead_acker_wait: "it has not finished",
    outcomes_are_told_twice: "(acked), and not of",
    everything_is_told_as_acked: "(acked), and not of",
    nothing_is_told: "was never told of",
}


@interpreted_only
@pytest.mark.parametrize(
    ("break_it", "violation"), BREAKS.items(), ids=lambda each: getattr(each, "__name__", "")
)
def test_a_broken_engine_is_seen(
    break_it: Callable[[Patch], None], violation: str, monkeypatch: Patch
) -> None:
    """Within a few seeds, and it says what is wrong."""
    break_it(monkeypatch)
    seen: list[str] = []
    for topology in (word_count(), everything()):
        try:
            simulate(topology, seeds=range(60), faults=Faults(kill=0.1))
        except SimulationFailed as failed:
            seen += failed.result.violations
            break
    assert violation in "".join(seen[:1])


@interpreted_only
def test_late_timeouts_are_seen(monkeypatch: Patch) -> None:
    """A tree whose acks are lost times out when its time is over, and not much later."""
    rotations_are_rare(monkeypatch)
    with pytest.raises(SimulationFailed, match="timed out only after"):
        simulate(word_count(), seeds=range(10), faults=Faults(drop=0.3, jump=0.0, kill=0.0))


@interpreted_only
@pytest.mark.parametrize("seconds", [None, 60.0])
def test_a_run_that_is_stopped_is_judged_as_one_that_ends(seconds: float | None, monkeypatch: Patch) -> None:
    """Messages that are lost are missed in the end, whatever has brought it about."""
    failed_messages_are_dropped(monkeypatch)
    with pytest.raises(SimulationFailed, match="messages, of which"):
        simulate(word_count(), seeds=range(20), faults=Faults(error=0.2), seconds=seconds)


@interpreted_only
@pytest.mark.parametrize(
    ("break_it", "violation"),
    [
        (dead_letters_are_thrown_away, "and no dead letter has it"),
        (dead_letters_come_twice, "which was not given up"),
    ],
)
def test_dead_letters_are_counted_where_they_arrive(
    break_it: Callable[[Patch], None], violation: str, monkeypatch: Patch
) -> None:
    """Each message that was given up comes to the sink once; the user's own sink gets it all the same."""
    letters: list[DeadLetter] = []

    def simulated() -> None:
        given = {"max_attempts": 1, "dead_letters": letters.append}
        simulate(word_count(), seeds=range(10), faults=Faults(error=0.3), configuration=given)

    simulated()
    assert {letter.component for letter in letters} == {"sentences"}
    break_it(monkeypatch)
    with pytest.raises(SimulationFailed, match=violation):
        simulated()
