"""Explanations of a tree, or of a message between two attempts: its state, its outstanding tuples, and their places."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any

import msgspec

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind, Place
from stormlet.core.timeline import Timeline
from stormlet.core.trees import OpenTree
from stormlet.errors import NotTracked
from stormlet.model.plan import TaskPlan
from stormlet.report.explanation import Explanation, Occupation, TreeState
from stormlet.runtime.context import Engine
from stormlet.runtime.explain.occupations import Occupations
from stormlet.runtime.explain.recorder import EdgeRecorder, RecordedTree
from stormlet.runtime.explain.timelines import MOST_KEPT, timeline_of
from stormlet.runtime.explain.whereabouts import Found, Whereabouts
from stormlet.runtime.slow_code import frames_of, users_of
from stormlet.runtime.spout.messages import Message
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks

UNRECORDED = "record_edges=1 would show since when, and by which way they came"
UNFINISHED = (FailureKind.TIMEOUT, FailureKind.SHUTDOWN)
"""Failures that come from outstanding tuples."""
END_OF_ROOTS = 2**64
NO_TUPLES = "no task has a tuple of it: an ack was lost, or is with code in a thread"


class Explainer:
    """Looks through one run."""

    def __init__(self, engine: Engine, tasks: Tasks) -> None:
        spouts, bolts = tasks.all_spouts, tasks.all_bolts
        names = {task.plan.task: task.plan.name for task in (*spouts, *bolts)}
        self.recorder = EdgeRecorder({task.name: task.outlets for task in spouts}, bolts, engine.clock)
        self._engine = engine
        self._tasks = tasks
        self._whereabouts = Whereabouts(names, bolts, self.recorder.trees, engine.clock)
        self._occupations = Occupations(bolts)

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        """See :meth:`stormlet.runtime.context.MessageObserver.tracked`."""
        self.recorder.tracked(tree, value)

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        """See :meth:`stormlet.runtime.context.MessageObserver.settled`. The failure of a recorded attempt gets what was
        outstanding."""
        recorded = self.recorder.settled(tree)
        failure = tree.failure
        if recorded is not None and failure is not None:
            outstanding = self._whereabouts.of_failed(recorded) if failure.kind in UNFINISHED else ()
            timeline = self._timeline(recorded)
            tree.failure = failure.recorded(
                self._engine.clock() - recorded.began,
                tuple(outstanding),
                None if timeline is None else timeline.shortened(MOST_KEPT),
            )

    def of_root(self, root: int) -> Explanation:
        """Of the tree of this root; also of one that is not open, of which bolts may still have tuples.

        Raises :class:`~stormlet.errors.NotTracked` with ``ackers=0``, and :class:`ValueError` for 0 and
        what is not in 64 bits.
        """
        self._check_tracked()
        # Untracked tuples have it, all of them, so that it would find those of many emits.
        if not root:
            raise ValueError("0 is the root of no tree: what is untracked belongs to none (law L10)")
        if not 0 < root < END_OF_ROOTS:
            raise ValueError(f"{root} is the root of no tree: roots are ints from 1 to 2**64 - 1")
        tree = self._tasks.open_tree(root)
        if tree is not None:
            return self._of_open({root: tree})[0]
        # Not open: between two attempts, or settled. Of the latter bolts may still have tuples.
        message = next((each for each in self.between_attempts() if each.root == root), None)
        return self._of_gone(root) if message is None else self.of_message(message)

    def of_message(self, message: Message) -> Explanation:
        """Of a message that has no final outcome yet."""
        # The root alone does not do: it belongs to the last attempt, which may be over.
        if self.is_open(message.root, message):
            return self._of_open({message.root: message})[0]
        for spout in self._tasks.all_spouts:
            for due, each in spout.tracker.replays:
                if each is message:
                    return self._of_waiting(spout, due, each)
        return self._of_settled(message)

    def oldest(self, most: int) -> Sequence[Explanation]:
        """Of the open trees that time out first, then of messages that wait for a replay or for ``dead_letters=`` to
        return; at most so many."""
        self._check_tracked()
        trees = dict(islice(self.open_trees(), most))
        others = chain(self._replays(), self._dead_letters())
        return [*self._of_open(trees), *islice(others, most - len(trees))]

    def of_trees(self, trees: Mapping[int, OpenTree]) -> Sequence[Explanation]:
        """Of open trees, by root."""
        return self._of_open(trees)

    def open_trees(self) -> Iterator[tuple[int, OpenTree]]:
        """All of them by root; those that time out first at the head, of each acker in turn."""
        # Each acker knows its own order alone; in turn, the first ones are those of all ackers.
        in_turn = zip_longest(*(acker.ledger.oldest() for acker in self._tasks.ackers))
        return (each for turn in in_turn for each in turn if each is not None)

    def is_open(self, root: int, tree: OpenTree) -> bool:
        """True for the open tree of this root; also if its acker has not read of it yet."""
        return self._tasks.open_tree(root) is tree

    def between_attempts(self) -> Iterator[Message]:
        """The messages whose last attempt has failed, whether their spouts know of it or not."""
        for spout in self._tasks.all_spouts:
            for tree in (*spout.tracker.outcomes, *(message for _, message in spout.tracker.replays)):
                if isinstance(tree, Message):
                    yield tree

    # Finding.

    def _check_tracked(self) -> None:
        if not self._tasks.ackers:
            raise NotTracked(
                "the topology runs with ackers=0, so there are no trees; set ackers to 1 or more"
            )

    def _acks_under_way(self, root: int) -> Iterator[str]:
        for task in self._tasks.all_bolts:
            if _is_settled_in(root, task.outbox.unsent_acks, task.outbox.fails):
                yield task.plan.name
        # A tree without outstanding tuples is no mystery while its acks are on their way.
        acker = self._tasks.acker_of(root)
        if any(_is_settled_in(root, control.acks.xored(), control.fails) for control in acker.unread):
            yield acker.name

    # Explaining.

    def _of_open(self, trees: Mapping[int, OpenTree]) -> list[Explanation]:
        # One look for all trees, as it goes through everything that bolts have.
        found = self._whereabouts.of(trees)
        return [self._of_tree(root, tree, found[root]) for root, tree in trees.items()]

    def _of_tree(self, root: int, tree: OpenTree, found: Sequence[Found]) -> Explanation:
        recorded = self.recorder.trees.get(root)
        acks = tuple(self._acks_under_way(root))
        return msgspec.structs.replace(
            self._of_message(self._tasks.all_spouts[tree.spout], tree, recorded),
            root=root,
            attempt=tree.failures + 1 if isinstance(tree, Message) else None,
            seconds=None if recorded is None else self._engine.clock() - recorded.began,
            exact=recorded is not None,
            outstanding=tuple(each.outstanding for each in found),
            occupations=self._occupations_of(found),
            acks=acks,
            recorded=recorded is not None,
            timeline=self._timeline(recorded),
            note=_note(recorded, found, acks),
        )

    def _timeline(self, recorded: RecordedTree | None) -> Timeline | None:
        return timeline_of(recorded) if recorded is not None and self.recorder.executions else None

    def _of_message(self, spout: SpoutTask, tree: OpenTree, recorded: RecordedTree | None) -> Explanation:
        explanation = Explanation(
            state=TreeState.OPEN, spout=spout.plan.component, message_id=tree.message_id
        )
        if isinstance(tree, Message):
            return msgspec.structs.replace(explanation, value=tree.value, failures=tree.history)
        return explanation if recorded is None else msgspec.structs.replace(explanation, value=recorded.value)

    def _occupations_of(self, found: Sequence[Found]) -> tuple[Occupation, ...]:
        """Of the tasks that have something else to do; those whose call shows where it is need no more words."""
        waiting = (
            each.task
            for each in found
            # What is executed shows where it is; what is queued or held needs what its task does meanwhile.
            if each.outstanding.place is not Place.EXECUTING or not each.outstanding.stack
        )
        return self._occupations.of(dict.fromkeys(waiting))

    def _of_waiting(self, spout: SpoutTask, due: float, message: Message) -> Explanation:
        return msgspec.structs.replace(
            self._of_message(spout, message, None),
            state=TreeState.WAITING,
            root=message.root or None,
            replay_in=max(0.0, due - self._engine.loop.time()) if due else 0.0,
            occupations=() if due else self._occupations.with_full_queues(spout.outbox),
        )

    def _of_settled(self, message: Message) -> Explanation:
        spout = self._tasks.all_spouts[message.spout]
        return msgspec.structs.replace(
            self._of_message(spout, message, None), state=TreeState.TELLING, root=message.root or None
        )

    def _of_gone(self, root: int) -> Explanation:
        # The engine forgets a root when it is settled; a bolt that still has a tuple of it may not have noticed.
        found = self._whereabouts.of([root])[root]
        return Explanation(
            state=TreeState.UNKNOWN,
            root=root,
            outstanding=tuple(each.outstanding for each in found),
            note="these tuples of it are still here, and nobody waits for them" if found else "",
        )

    def _replays(self) -> Iterator[Explanation]:
        for spout in self._tasks.all_spouts:
            for due, message in spout.tracker.replays:
                yield self._of_waiting(spout, due, message)

    def _dead_letters(self) -> Iterator[Explanation]:
        for spout in self._tasks.all_spouts:
            for writing, letter in spout.tracker.hand_overs.letters.items():
                yield _of_letter(writing, letter)


def _of_letter(writing: asyncio.Task[Any], letter: DeadLetter) -> Explanation:
    stack = users_of(frames_of(writing))
    return Explanation(
        state=TreeState.BURYING,
        spout=letter.component,
        message_id=letter.message_id,
        value=letter.value,
        failures=letter.history,
        occupations=(Occupation("dead_letters=", "has not returned", stack),),
    )


def _is_settled_in(root: int, acks: Mapping[int, int], fails: Sequence[tuple[int, Failure]]) -> bool:
    """True if acks or fails of this tree are there."""
    return root in acks or any(root == each for each, _ in fails)


def _note(recorded: RecordedTree | None, found: Sequence[Found], acks: Sequence[str]) -> str:
    if not found:
        return "" if acks else NO_TUPLES
    # Advice only where there is something that a record would add to.
    return UNRECORDED if recorded is None else ""
