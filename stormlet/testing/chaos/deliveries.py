"""The ways of tuples, outcomes and messages to the ackers: seen by the witness, and disturbed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from stormlet.core.acks import Acks
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Tuple
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Control, Post
from stormlet.testing.chaos.disturbed_run import DisturbedRun
from stormlet.testing.chaos.faults import FaultKind

LONGEST_DELAY = 10.0
LONGEST_JUMP = 40.0
LONGEST_SILENCE = 60.0


class WatchedInbox(Inbox):
    """An inbox whose list reports each append."""

    __slots__ = ("_delivered", "_fault")

    def __init__(
        self,
        capacity: int,
        wake_consumer: Callable[[], None],
        delivered: Callable[[Tuple[Any], int], None],
        fault: Callable[[], None],
    ) -> None:
        super().__init__(capacity, wake_consumer)
        self._delivered = delivered
        self._fault = fault
        self.items = WatchedList(delivered, fault)

    def take(self) -> list[Tuple[Any]]:
        self._fault()
        items = super().take()
        if type(self.items) is list:
            self.items = WatchedList(self._delivered, self._fault)
        return items


class WatchedList(list[Tuple[Any]]):
    """Tuples that wait."""

    __slots__ = ("_delivered", "_fault")

    def __init__(self, delivered: Callable[[Tuple[Any], int], None], fault: Callable[[], None]) -> None:
        super().__init__()
        self._delivered = delivered
        self._fault = fault

    def append(self, tup: Tuple[Any]) -> None:
        self._fault()
        super().append(tup)
        self._delivered(tup, len(self))


class WatchedOutcomes(deque[OpenTree]):
    """Outcomes that wait."""

    def __init__(self, settled: Callable[[OpenTree], None], fault: Callable[[], None]) -> None:
        super().__init__()
        self._settled = settled
        self._fault = fault

    def append(self, tree: OpenTree) -> None:
        self._fault()
        self._settled(tree)
        super().append(tree)

    def extend(self, trees: Iterable[OpenTree]) -> None:
        for tree in trees:
            self.append(tree)


class DisturbedPost:
    """The way from one task to one acker, by which messages may come late, twice or not at all."""

    def __init__(self, run: DisturbedRun, plan: TaskPlan, post: Post, index: int) -> None:
        self._run = run
        self._plan = plan
        self._post = post
        self._index = index

    def post(self, control: Control) -> None:
        """Hand on a control message, or parts of it."""
        run, witness, place = self._run, self._run.witness, self._plan.name
        run.engine_fault(self._plan)
        for tree in control.inits:
            witness.emitted(self._plan, tree.root, tree)
        witness.extended(control.resets)
        for each in self._lossy(control):
            if (random := run.strikes(FaultKind.DELAY, place)) is not None:
                self._delay(each, random.uniform(0.0, LONGEST_DELAY))
            else:
                self._post(each)
        self._kill()
        if (random := run.strikes(FaultKind.JUMP, "clock")) is not None:
            seconds = random.uniform(0.0, LONGEST_JUMP)
            run.journal.note("FAULT: the clock jumps by {} s", round(seconds, 3))
            run.jump(seconds)
            witness.jumped()

    def _lossy(self, control: Control) -> list[Control]:
        """Inits cannot be lost in one process, and a lost one would never be noticed; acks and fails are (L5)."""
        if self._run.witness.timeout is None or not (control.acks or control.fails):
            return [control]
        if self._strikes(FaultKind.DROP, "acks and fails of {} are lost", control):
            return [Control(control.inits, Acks(), [], control.resets)]
        if self._strikes(FaultKind.DUPLICATE, "acks and fails of {} arrive twice", control):
            return [control, Control([], control.acks, control.fails, [])]
        return [control]

    def _strikes(self, kind: FaultKind, text: str, control: Control) -> bool:
        struck = self._run.strikes(kind, self._plan.name) is not None
        if struck:
            self._run.journal.note(f"FAULT: {text}", self._plan.name)
            self._run.witness.disturbed([root for root, _ in (*control.acks, *control.fails)])
        return struck

    def _delay(self, control: Control, seconds: float) -> None:
        self._run.journal.note("FAULT: a message of {} comes {} s late", self._plan.name, round(seconds, 3))
        roots = [
            *(tree.root for tree in control.inits),
            *(root for root, _ in (*control.acks, *control.fails)),
        ]
        roots += control.resets
        self._run.witness.disturbed(roots)
        self._run.witness.extended(roots)
        asyncio.get_running_loop().call_later(seconds, self._post, control)

    def _kill(self) -> None:
        run, plan = self._run, self._plan
        acker = run.tasks.ackers[self._index]
        if run.strikes(FaultKind.KILL, acker.name) is not None:
            run.kill(acker)
        spouts = run.tasks.spouts.get(plan.component, ())
        if (
            spouts
            and plan.component not in run.immortal
            and run.strikes(FaultKind.KILL, plan.name) is not None
        ):
            run.kill(spouts[plan.index])
        if spouts and spouts[plan.index].engine.epoch is not None:
            self._silence(spouts[plan.index])

    def _silence(self, spout: SpoutTask) -> None:
        random = self._run.strikes(FaultKind.SILENCE, self._plan.name)
        if random is not None:
            self._run.silence(spout, random.uniform(0.0, LONGEST_SILENCE))
