"""The occupation of a bolt task while tuples wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from stormlet.core.shortened import counted, shortened
from stormlet.core.tracebacks import Call
from stormlet.report.explanation import Occupation
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.slow_code import frames_of, thread_frames, users_of
from stormlet.runtime.wire.collector import AnyTuple
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Outbox


class Occupations:
    """Looks at the tasks of one run."""

    def __init__(self, bolts: Iterable[BoltTask]) -> None:
        # An outbox knows the queues in which it waits, and not their tasks.
        self._consumers = {id(task.inbox): task for task in bolts}

    def of(self, tasks: Iterable[BoltTask]) -> tuple[Occupation, ...]:
        """The occupations of these tasks, and of those that they wait for, and so on; each once."""
        found: dict[BoltTask, Occupation] = {}
        # Depth first, so that each task stands next to the one for which it waits.
        left = list(tasks)
        while left:
            task = left.pop(0)
            if task not in found:
                consumer = self._awaited_consumer(task)
                found[task] = _occupation(task, consumer)
                left[:0] = [] if consumer is None else [consumer]
        return tuple(found.values())

    def with_full_queues(self, outbox: Outbox) -> tuple[Occupation, ...]:
        """The occupations of the tasks in whose queues the owner of this outbox waits for room."""
        return self.of(self.consumer(inbox) for inbox in outbox.crowded if inbox.full)

    def _awaited_consumer(self, task: BoltTask) -> BoltTask | None:
        """The task for room in whose queue this one waits (law B6)."""
        # The task is woken when there is room, and may not have run since: then it waits for nothing any more.
        full = next((inbox for inbox in task.outbox.awaited if inbox.full), None)
        return None if full is None else self.consumer(full)

    def consumer(self, inbox: Inbox) -> BoltTask:
        """The consumer of a queue."""
        return self._consumers[id(inbox)]


def call_stack(task: BoltTask, tup: AnyTuple, coroutine: asyncio.Task[Any] | None) -> tuple[Call, ...]:
    """The place of user code that was called with this input, in its coroutine and in its thread."""
    stack = () if coroutine is None else users_of(frames_of(coroutine))
    threads = [ident for ident, inputs in task.worker.threads().items() if tup in inputs]
    return (*stack, *(call for ident in threads for call in users_of(thread_frames(ident))))


def _occupation(task: BoltTask, consumer: BoltTask | None) -> Occupation:
    if consumer is not None:
        full = consumer.plan.name
        doing = (
            f"waits for room in the queue of {full}, which has {counted(len(consumer.inbox.items), 'tuple')}, "
            f"of {consumer.inbox.capacity:,}"
        )
        return Occupation(task.plan.name, doing, full=full)
    calls = task.calls()
    stacks = [call_stack(task, tup, coroutine) for tup, coroutine in calls.items()]
    return Occupation(task.plan.name, _doing(task, list(calls)), next(iter(stacks), own_stack(task)))


def _doing(task: BoltTask, calls: Sequence[AnyTuple]) -> str:
    # Its calls are over, whatever they were doing.
    if not task.working:
        return "has died, and is about to be restarted"
    if calls:
        return f"executes {shortened(calls[0].value)}{_and_more(len(calls) - 1)}"
    if own_stack(task):
        return f"is in {task.doing}"
    # Other tasks use up the budget of the iteration (law F2); that is no fault of this one.
    return "has its turn soon" if task.queue() else "waits for more input"


def _and_more(count: int) -> str:
    return f" and {count:,} more" if count else ""


def own_stack(task: BoltTask) -> tuple[Call, ...]:
    """The place of user code that the task itself has called."""
    stack = () if task.coroutine is None else users_of(frames_of(task.coroutine))
    return (*stack, *(call for ident in task.worker.threads() for call in users_of(thread_frames(ident))))
