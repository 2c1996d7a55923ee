"""The kit of a simulated run: its parts let the witness know, suffer the faults, and show what user code does."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from stormlet.core.groupings import Fields, Grouping, PartialKey
from stormlet.core.outcomes import DeadLetter
from stormlet.core.trees import OpenTree
from stormlet.model.components import Bolt, BoltBase, ReliableSpout, Spout
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.worker import Worker
from stormlet.runtime.dead_letters import DeadLetterSink
from stormlet.runtime.run.handle import Running
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.spout.spout_feed import OutcomeReceiver
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Post
from stormlet.testing.chaos.calls import Calls
from stormlet.testing.chaos.data import frozen
from stormlet.testing.chaos.deliveries import DisturbedPost, WatchedInbox, WatchedOutcomes
from stormlet.testing.chaos.disturbed_run import DisturbedRun
from stormlet.testing.chaos.evidence import Collecting, Evidence, Kept, Left, Way
from stormlet.testing.chaos.outcomes import WatchedSpout
from stormlet.testing.chaos.worker import DisturbedWorker, SerialWorker
from stormlet.testing.images import EmittedValues
from stormlet.testing.watched_run import SpoutOrBolt, WatchedOutlet


class DisturbedKit(Kit):
    """Makes the parts of one run, by which the engine is judged."""

    records_executions = False
    """A run with a recorder must be the same as that without, step by step."""

    def __init__(self, run: DisturbedRun) -> None:
        self.run = run

    def assembled(self, tasks: Tasks) -> None:
        self.run.assembled(tasks)

    def inbox(self, plan: TaskPlan, capacity: int, wake_consumer: Callable[[], None]) -> Inbox:
        """A queue whose tuples are seen."""
        witness, fault = self.run.witness, partial(self.run.engine_fault, plan)
        witness.queue(plan, capacity)
        return WatchedInbox(capacity, wake_consumer, partial(witness.delivered, plan), fault)

    def outcomes(self, plan: TaskPlan) -> deque[OpenTree]:
        """Outcomes that are judged when they are taken."""
        return WatchedOutcomes(partial(self.run.witness.settled, plan), partial(self.run.engine_fault, plan))

    def own_outcomes(self) -> deque[OpenTree]:
        """Those of trees that belong to no message."""
        return WatchedOutcomes(self.run.own_settled, _nothing)

    def receiver(self, plan: TaskPlan, spout: Spout[Any]) -> OutcomeReceiver:
        """An instance whose outcomes are seen."""
        outcomes = self.run.witness.outcomes
        outcomes.expect(plan, partial(self._withdrawn, plan))
        return WatchedSpout(spout, partial(outcomes.received, plan), partial(self.run.raising.call, plan))

    def _withdrawn(self, plan: TaskPlan) -> int:
        return self.run.tasks.spouts[plan.component][plan.index].tracker.counts.withdrawn

    def instance(self, plan: TaskPlan, instance: BoltBase[Any, Any] | Spout[Any]) -> None:
        """One that may raise, unless its class has slots instead of attributes."""
        name = "next_tuple" if isinstance(instance, Spout) else "execute_batch"
        method: Callable[..., Awaitable[None] | None] | None = getattr(instance, name, None)
        with suppress(AttributeError):
            if method is not None:
                setattr(instance, name, partial(self._call, plan, name, method))
            if isinstance(instance, Spout):
                instance.close = partial(self._close, instance.close)  # type: ignore[method-assign]

    def _call(
        self, plan: TaskPlan, name: str, method: Callable[..., Awaitable[None] | None], *arguments: object
    ) -> Awaitable[None] | None:
        return self.run.raising.call(plan, name, partial(method, *arguments))

    def _close(self, close: Callable[[], Awaitable[None] | None]) -> Awaitable[None] | None:
        return None if self.run.is_over else close()

    def grouping(self, plan: TaskPlan, grouping: Grouping) -> Grouping:
        """One whose key function may raise."""
        if isinstance(grouping, Fields | PartialKey) and grouping.key is not None:
            return msgspec.structs.replace(grouping, key=partial(self.run.raising.key, plan, grouping.key))
        return grouping

    def dead_letters(self, sink: DeadLetterSink | None) -> DeadLetterSink:
        """A sink that is watched."""

        def write(letter: DeadLetter) -> Awaitable[None] | Future[None] | None:
            spouts, outlived = self.run.tasks.spouts[letter.component], self.run.outlived
            is_of_this_life = not outlived.lives or bool(letter.history)
            outlived.letters += 1
            self.run.witness.given_up.written(letter, expected=is_of_this_life and not spouts[0].feed.dies)
            return None if sink is None else sink(letter)

        return write

    def posts(self, plan: TaskPlan, posts: Sequence[Post]) -> Sequence[Post]:
        return [DisturbedPost(self.run, plan, post, index).post for index, post in enumerate(posts)]

    def worker(self, plan: TaskPlan, worker: Worker) -> Worker:
        return DisturbedWorker(self.run, plan, worker)


class JudgedKit(DisturbedKit):
    """Makes the parts of one run, by which the user's code is judged as well as the engine. Its calls may come one at a
    time instead, to compare with runs in which they overlap."""

    def __init__(
        self,
        run: DisturbedRun,
        *,
        allowed: Collection[str] = (),
        collects: bool = False,
        way: Way = Way.AS_DECLARED,
    ) -> None:
        super().__init__(run)
        self.evidence = Evidence()
        """For comparison, once the run has come to its end."""
        self.ended_early = False
        """True if the process was killed, or could not go on without its store: it is to begin again."""
        self.calls = Calls(self.accuse, run.steps.before)
        self._allowed = allowed
        self._collecting = Collecting() if collects else None
        self.way = way
        self._turn = asyncio.Lock()
        self._values = EmittedValues()
        self._instances: dict[TaskPlan, object] = {}

    def accuse(self, kind: str, text: str, *values: object) -> None:
        """The user's code does what it should not do, unless that is allowed."""
        if kind not in self._allowed:
            self.run.witness.violation(text, *values)

    def assembled(self, tasks: Tasks) -> None:
        super().assembled(tasks)
        everyone: Sequence[SpoutOrBolt] = [*tasks.all_spouts, *tasks.all_bolts]
        for task in everyone:
            for stream, outlet in task.outlets.items():
                task.outlets[stream] = WatchedOutlet(outlet, partial(self._emitted, task, stream))
        if self._collecting is not None:
            self._collecting.begin(tasks.all_bolts, self._instances)

    def _emitted(self, task: SpoutOrBolt, stream: str, value: object, roots: Sequence[int]) -> None:
        self._values.note(task.plan, stream, value)
        if isinstance(task, SpoutTask) and task.engine.epoch is not None:
            self.run.outlived.given[task.plan.component, stream, frozen(value)] = None
        if self._collecting is not None:
            self._collecting.emitted(
                task.plan,
                stream,
                value,
                spout=isinstance(task, SpoutTask),
                finishing=task.doing == "finish",
            )

    def instance(self, plan: TaskPlan, instance: BoltBase[Any, Any] | Spout[Any]) -> None:
        super().instance(plan, instance)
        self._instances[plan] = instance
        if isinstance(instance, Bolt):
            self.calls.watch(plan, instance)

    def worker(self, plan: TaskPlan, worker: Worker) -> Worker:
        if self.way is Way.AS_DECLARED:
            return super().worker(plan, worker)
        return SerialWorker(self.run, plan, worker, self._turn, self.way)

    def end(self, running: Running) -> None:
        """The run has come to its end: judge what can be judged now, and keep what can be compared."""
        for line in self._values.changes():
            self.accuse("values", "{}", line)
        tasks = self.run.tasks
        results = None if self._collecting is None else self._collecting.results(tasks, self._instances)
        bolts = [task.name for task in tasks.all_bolts]
        self.evidence = Evidence(
            bolts, dict(self._kept()), dict(self.calls.joins), results, self._left(running)
        )

    def _left(self, running: Running) -> Left | None:
        run, outlived = self.run, self.run.outlived
        if run.tasks.all_spouts[0].engine.epoch is None or outlived.letters:
            return None
        description = run.tasks.all_spouts[0].engine.plan.description
        if any(bolt.tick or bolt.timed for bolt in description.bolts.values()):
            return None
        kept = {
            str(id): Counter(frozen(each) for each in running.state(id.component, id.state).items())
            for id in description.states
            if id.component in description.bolts
        }
        kept |= {f"the rows of {id}": rows for id, rows in outlived.commits.rows.items()}
        kept |= {f"the table {name}": Counter(rows.values()) for name, rows in outlived.store.tables.items()}
        return Left(frozenset(outlived.given), kept)

    def _kept(self) -> dict[str, Kept]:
        """Of the spouts that must replay by themselves."""
        kept: dict[str, Kept] = {}
        for plan, account in self.run.witness.accounts.items():
            instance = self._instances.get(plan)
            if isinstance(instance, Spout) and not isinstance(instance, ReliableSpout):
                acked, failed = kept.get(plan.component, Kept(0, 0))
                kept[plan.component] = Kept(acked + account.acked, failed + account.failed)
        return kept

    def forget(self) -> None:
        """The run is over."""
        self.run.witness.forget()
        self._instances.clear()
        self._values = EmittedValues()


def _nothing() -> None:
    """Nothing of the engine's happens there."""
