"""Finds out of a tree, or of a message between two attempts, what there is to tell."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any

import msgspec

from stormlet.core.ids import shard_of
from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import DeadLetter, Failure, Place
from stormlet.errors import NotTracked
from stormlet.report.explanation import Explanation, Occupation, TreeState
from stormlet.runtime.context import Engine
from stormlet.runtime.explain.occupations import Occupations
from stormlet.runtime.explain.recorder import EdgeRecorder, RecordedTree
from stormlet.runtime.explain.whereabouts import Found, Whereabouts
from stormlet.runtime.slow_code import frames_of, users_of
from stormlet.runtime.spout.messages import Message
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks

UNRECORDED = "record_edges=1 would tell since when, and by which way they came"
NO_TUPLES = "no task has a tuple of it: an ack was lost, or is with code in a thread"


class Explainer:
    """Looks through one run."""

    def __init__(self, engine: Engine, tasks: Tasks) -> None:
        self.recorder = EdgeRecorder(tasks, engine.clock)
        self._engine = engine
        self._tasks = tasks
        self._whereabouts = Whereabouts(tasks, self.recorder, engine.clock)
        self._occupations = Occupations(tasks)
        self.recorder.tell = self._whereabouts.of_failed

    def of_root(self, root: int) -> Explanation:
        """Of the tree of this root; also of one that is not open, of which bolts may still have tuples.

        Raises :class:`~stormlet.errors.NotTracked` with ``ackers=0``, and :class:`ValueError` for 0.
        """
        self._check_tracked()
        if not root:
            raise ValueError("0 is the root of no tree: what is untracked belongs to none (law L10)")
        tree = self._open_tree(root)
        if tree is not None:
            return self._of_open({root: tree})[0]
        message = next((each for each in self.between_attempts() if each.root == root), None)
        return self._of_gone(root) if message is None else self.of_message(message)

    def of_message(self, message: Message) -> Explanation:
        """Of a message that has no final outcome yet."""
        if self.is_open(message.root, message):
            return self._of_open({message.root: message})[0]
        for spout in self._tasks.all_spouts:
            for due, each in spout.tracker.replays:
                if each is message:
                    return self._of_waiting(spout, due, each)
        return self._of_told(message)

    def oldest(self, most: int) -> Sequence[Explanation]:
        """Of the open trees that time out first, then of messages that wait for a replay or for ``dead_letters=`` to
        return; at most so many."""
        self._check_tracked()
        trees = dict(islice(self.open_trees(), most))
        others = chain(self._replays(), self._burials())
        return [*self._of_open(trees), *islice(others, most - len(trees))]

    def of_trees(self, trees: Mapping[int, OpenTree]) -> Sequence[Explanation]:
        """Of open trees, by root."""
        return self._of_open(trees)

    def open_trees(self) -> Iterator[tuple[int, OpenTree]]:
        """All of them by root; those that time out first at the head, of each acker in turn."""
        in_turn = zip_longest(*(acker.ledger.oldest() for acker in self._tasks.ackers))
        return (each for turn in in_turn for each in turn if each is not None)

    def is_open(self, root: int, tree: OpenTree) -> bool:
        """True for the open tree of this root; also if its acker has not heard of it yet."""
        return self._open_tree(root) is tree

    def between_attempts(self) -> Iterator[Message]:
        """The messages whose last attempt has failed, whether their spouts have been told or not."""
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

    def _open_tree(self, root: int) -> OpenTree | None:
        acker = self._tasks.ackers[shard_of(root, len(self._tasks.ackers))]
        tree = acker.ledger.open_tree(root)
        if tree is not None:
            return tree
        on_their_way = (
            *(control.inits for control in acker.unread),
            *(spout.outbox.inits for spout in self._tasks.all_spouts),
        )
        return next((inits[root] for inits in on_their_way if root in inits), None)

    def _acks_under_way(self, root: int) -> Iterator[str]:
        for task in self._tasks.all_bolts:
            if _tells_of(root, task.outbox.unsent_acks, task.outbox.fails):
                yield task.plan.name
        acker = self._tasks.ackers[shard_of(root, len(self._tasks.ackers))]
        if any(_tells_of(root, control.acks, control.fails) for control in acker.unread):
            yield acker.name

    # Telling.

    def _of_open(self, trees: Mapping[int, OpenTree]) -> list[Explanation]:
        found = self._whereabouts.of(trees)
        return [self._of_tree(root, tree, found[root]) for root, tree in trees.items()]

    def _of_tree(self, root: int, tree: OpenTree, found: Sequence[Found]) -> Explanation:
        recorded = self.recorder.recorded(root)
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
            note=_note(recorded, found, acks),
        )

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

    def _of_told(self, message: Message) -> Explanation:
        spout = self._tasks.all_spouts[message.spout]
        return msgspec.structs.replace(
            self._of_message(spout, message, None), state=TreeState.TELLING, root=message.root or None
        )

    def _of_gone(self, root: int) -> Explanation:
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

    def _burials(self) -> Iterator[Explanation]:
        for spout in self._tasks.all_spouts:
            for burying, letter in spout.tracker.burials.letters.items():
                yield _of_letter(burying, letter)


def _of_letter(burying: asyncio.Task[Any], letter: DeadLetter) -> Explanation:
    stack = users_of(frames_of(burying))
    return Explanation(
        state=TreeState.BURYING,
        spout=letter.component,
        message_id=letter.message_id,
        value=letter.value,
        failures=letter.history,
        occupations=(Occupation("dead_letters=", "has not returned", stack),),
    )


def _tells_of(root: int, acks: Mapping[int, int], fails: Sequence[tuple[int, Failure]]) -> bool:
    """True if acks or fails of this tree are there."""
    return root in acks or any(root == each for each, _ in fails)


def _note(recorded: RecordedTree | None, found: Sequence[Found], acks: Sequence[str]) -> str:
    if not found:
        return "" if acks else NO_TUPLES
    return UNRECORDED if recorded is None else ""
