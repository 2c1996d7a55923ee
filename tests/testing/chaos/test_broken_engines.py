"""The tester tested: an engine that is broken in one place, and a simulation that sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from stormlet import Topology
from stormlet.core import progress
from stormlet.core.acks import Acks
from stormlet.core.ledger import Ledger
from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.core.progress import Step
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Lineage, Tuple
from stormlet.runtime.acker.bookkeeper import Bookkeeper
from stormlet.runtime.acker.task import AckerTask, DeadSpout
from stormlet.runtime.bolt.functions import FunctionWorker
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.run import conductor
from stormlet.runtime.spout.spout_feed import SpoutFeed
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.spout.tracker import Tracker
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Delivery, Target
from stormlet.testing import Faults, SimulationFailed, simulate
from tests.helpers import interpreted_only
from tests.testing.chaos.topologies import everything, keyed, reliable, word_count

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
            self.outbox.ack(tup.root, own)
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

    def patched(self: Any, inits: Sequence[OpenTree]) -> None:
        for tree in inits:
            tree.spout = 0
        init(self, inits)

    patch.setattr(Ledger, "init", patched)


def unsent_acks_die_with_the_task(patch: Patch) -> None:
    """Law F1."""
    lose = BoltTask.lose

    def patched(self: Any, error: Exception) -> None:
        self.outbox.acks = Acks()
        self.outbox.run = 0
        lose(self, error)

    patch.setattr(BoltTask, "lose", patched)


def what_a_dead_task_held_is_forgotten(patch: Patch) -> None:
    """Nothing fails with TASK_LOST, so that messages wait for their timeout (law L14)."""
    lose = BoltTask.lose

    def patched(self: Any, error: Exception) -> None:
        self._handed = list
        lose(self, error)
        del self._handed

    patch.setattr(BoltTask, "lose", patched)


def replays_are_not_pending(patch: Patch) -> None:
    """Law S3."""
    settle, replay = Tracker._settle_kept, Tracker._replay

    def settled(self: Any, message: Any, failure: Failure) -> None:
        before = len(self.replays)
        settle(self, message, failure)
        self.pending -= len(self.replays) - before

    def replayed(self: Any, message: Any, waiting: Any) -> None:
        self.pending += 1
        replay(self, message, waiting)

    patch.setattr(Tracker, "_settle_kept", settled)
    patch.setattr(Tracker, "_replay", replayed)


def finish_goes_downstream_first(patch: Patch) -> None:
    """Law C2."""

    def next_step(survey: Any, order: Any) -> tuple[Step, Any]:
        return progress.next_step(survey, list(reversed(order)))

    patch.setattr(conductor, "next_step", next_step)


def outcomes_are_delivered_twice(patch: Patch) -> None:
    """Law L4, L15."""
    give = Bookkeeper.give_verdicts

    def patched(self: Any) -> None:
        again = list(self.ledger.acked)
        give(self)
        for tree in again[:1]:
            self.verdicts[tree.spout].trees.append(tree)

    patch.setattr(Bookkeeper, "give_verdicts", patched)


def fails_are_forgotten(patch: Patch) -> None:
    """A fail has no effect (law L4)."""

    def fail(self: Any, root: int, failure: Failure) -> None:
        self.ack(Acks([(root, 0)]))

    patch.setattr(Ledger, "fail", fail)


def nobody_waits_for_room(patch: Patch) -> None:
    """Law B6."""

    async def room(self: Any) -> None:
        self.crowded.clear()

    patch.setattr(Outbox, "room", room)


def messages_of_a_dead_acker_wait(patch: Patch) -> None:
    """Its trees are forgotten instead of failed."""

    def lose(self: Any, error: Exception) -> None:
        self.ledger = self._bookkeeper.ledger = Ledger()

    patch.setattr(AckerTask, "lose", lose)


def failed_messages_are_dropped(patch: Patch) -> None:
    """Law S6."""

    settle = Tracker._settle_kept

    def settled(self: Any, message: Any, failure: Failure) -> None:
        settle(self, message, failure)
        self.pending -= len(self.replays.take_all())

    patch.setattr(Tracker, "_settle_kept", settled)


def outcomes_are_reported_twice(patch: Patch) -> None:
    """Law S1, L15."""
    deliver = SpoutFeed._deliver

    def twice(self: Any, tree: OpenTree) -> Any:
        deliver(self, tree)
        return deliver(self, tree)

    patch.setattr(SpoutFeed, "_deliver", twice)


def everything_is_reported_as_acked(patch: Patch) -> None:
    """Law S1."""
    deliver = SpoutFeed._deliver

    def acked(self: Any, tree: OpenTree) -> Any:
        return deliver(self, OpenTree(message_id=tree.message_id))

    patch.setattr(SpoutFeed, "_deliver", acked)


def nothing_is_reported(patch: Patch) -> None:
    """Law S1."""

    def silent(self: Any, tree: OpenTree) -> None:
        self._spout.waiting.discard(tree.message_id)

    patch.setattr(SpoutFeed, "_deliver", silent)


def dead_letters_are_thrown_away(patch: Patch) -> None:
    """Law S6."""
    patch.setattr(DeadLetters, "hand_over", lambda *_: None)


def dead_letters_come_twice(patch: Patch) -> None:
    """Law S6."""
    hand_over = DeadLetters.hand_over

    def twice(self: Any, letter: Any) -> Any:
        hand_over(self, letter)
        return hand_over(self, letter)

    patch.setattr(DeadLetters, "hand_over", twice)


def dead_letters_are_made_up(patch: Patch) -> None:
    """Law S6."""
    hand_over = DeadLetters.hand_over

    def and_another(self: Any, letter: Any) -> Any:
        hand_over(self, replace(letter, history=()))
        return hand_over(self, letter)

    patch.setattr(DeadLetters, "hand_over", and_another)


def messages_are_replayed_after_their_letter(patch: Patch) -> None:
    """Law S6."""
    give_up = Tracker._give_up

    def and_replay(self: Any, message: Any, failure: Failure) -> None:
        give_up(self, message, failure)
        self.pending += 1
        self.replays.add(message)

    patch.setattr(Tracker, "_give_up", and_replay)


def rotations_are_rare(patch: Patch) -> None:
    """Law L12."""
    rotate_soon, asked = AckerTask.rotate_soon, Counter[int]()

    def rotate_seldom(self: Any) -> None:
        asked[self.plan.task] += 1
        if asked[self.plan.task] % 3 == 0:
            rotate_soon(self)

    patch.setattr(AckerTask, "rotate_soon", rotate_seldom)


def a_dead_spout_sends_nothing(patch: Patch) -> None:
    """What it has not sent waits for whatever it does next (law F1)."""

    def patched(self: Any, error: Exception) -> None:
        self._stop_nap()
        if self.feed.dies:
            failure = Failure(FailureKind.TASK_LOST, reason=f"{self.name} died", exception=error)
            for acker in self._ackers:
                acker.fail_of_soon(DeadSpout(self._number, failure))

    patch.setattr(SpoutTask, "lose", patched)
    patch.setattr(SpoutTask, "flush_outbox", lambda self: None)


def the_next_life_begins_without_room(patch: Patch) -> None:
    """What died while it waited for room does not wait any more (law B6)."""

    async def patched(self: Any) -> None:
        while True:
            self.life.check_cancelled()
            await self._work()
            self.outbox.leave()
            if not self._has_work():
                await self.sleep()

    patch.setattr(BoltTask, "run", patched)


BREAKS = {
    one_edge_for_all_replicas: "was acked although",
    the_child_is_registered_too_late: "was acked although",
    entries_are_dropped_by_a_rotation: "it has not finished",
    verdicts_go_to_the_first_spout: "went to numbers[0]",
    unsent_acks_die_with_the_task: "timed out although nobody had a tuple of it",
    what_a_dead_task_held_is_forgotten: "timed out although nobody had a tuple of it",
    replays_are_not_pending: "pending messages, and there are",
    finish_goes_downstream_first: "finishes before",
    outcomes_are_delivered_twice: "got a second outcome",
    fails_are_forgotten: "timed out although nobody had a tuple of it",
    nobody_waits_for_room: "tuples, with a capacity of",
    messages_of_a_dead_acker_wait: "it has not finished",
    outcomes_are_reported_twice: "(acked), and not ",
    everything_is_reported_as_acked: "(acked), and not ",
    nothing_is_reported: "never got",
}


@pytest.mark.untraced
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


@pytest.mark.untraced
@interpreted_only
@pytest.mark.parametrize(
    ("break_it", "make", "faults", "violation"),
    [
        (a_dead_spout_sends_nothing, keyed, "kill=0.1 error=0.1 crowd=1", "is dead, and"),
        (
            the_next_life_begins_without_room,
            everything,
            "kill=0.2 slow=0.1 crowd=1 error=0 delay=0 drop=0 duplicate=0 jump=0",
            "tuples, with a capacity of",
        ),
    ],
)
def test_a_death_anywhere_is_seen(
    break_it: Callable[[Patch], None],
    make: Callable[[], Topology],
    faults: str,
    violation: str,
    monkeypatch: Patch,
) -> None:
    """Tasks die also in the middle of what they emit, and while they wait for room."""
    simulate(make(), seeds=range(120), faults=faults)
    break_it(monkeypatch)
    with pytest.raises(SimulationFailed, match=violation):
        simulate(make(), seeds=range(120), faults=faults)


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
        (dead_letters_come_twice, "a second dead letter of sentences has"),
        (dead_letters_are_made_up, "which was not given up"),
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


@interpreted_only
def test_a_letter_that_comes_twice_is_seen_of_a_spout_that_writes_letters_itself(monkeypatch: Patch) -> None:
    """What the code of a ``ReliableSpout`` gives up is its own affair; of what the engine keeps there is one letter
    each."""
    faults = Faults(error=0.3)
    simulate(reliable(), seeds=range(10), faults=faults)
    dead_letters_come_twice(monkeypatch)
    with pytest.raises(SimulationFailed, match="a second dead letter of readings has"):
        simulate(reliable(), seeds=range(10), faults=faults)


@interpreted_only
@pytest.mark.parametrize("make", [word_count, reliable])
def test_a_message_that_lives_on_after_its_dead_letter_is_seen(
    make: Callable[[], Topology], monkeypatch: Patch
) -> None:
    """Whoever has read the letter believes that it was given up."""
    messages_are_replayed_after_their_letter(monkeypatch)
    with pytest.raises(SimulationFailed, match="begins again after its dead letter"):
        simulate(make(), seeds=range(10), faults=Faults(error=0.3), configuration={"max_attempts": 1})
