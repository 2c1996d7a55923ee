"""The collectors of ``Spout`` classes: ``emit``, ``wake``, ``pause_until_settled`` and the dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import repeat
from operator import is_

from stormlet.core.outcomes import DeadLetter, Failure
from stormlet.core.shortened import shortened
from stormlet.core.trees import OpenTree, new_tree
from stormlet.core.tuples import Lineage
from stormlet.errors import InvalidEmit, TopologyStopping
from stormlet.model.checks.numbers import is_int
from stormlet.model.components import DEFAULT_STREAM, SourceEpoch
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout.context import FeedContext
from stormlet.runtime.spout.messages import lineage_now, spout_message
from stormlet.runtime.wire.loop_thread import called_elsewhere


class SpoutOut:
    """The collector of a spout task."""

    __slots__ = (
        "_context",
        "_keeps_all",
        "_outbox",
        "_plan",
        "_strict",
        "_switches",
        "_topology",
        "_tracker",
        "threads",
    )

    def __init__(self, context: FeedContext) -> None:
        self._context = context
        self._plan = context.plan
        self._switches = context.switches
        self._tracker = context.tracker
        self._topology = context.variables
        self._outbox = context.outbox
        self._strict = context.outbox.thread.strict
        self._keeps_all = context.tracker.keeps_all
        self.threads = context.threads_of_next_instance()
        """Emits of the instance's own threads."""

    @property
    def pending(self) -> int:
        """See :attr:`stormlet.model.components.SpoutCollector.pending`."""
        return self._tracker.pending

    def wake(self) -> None:
        """See :meth:`stormlet.model.components.SpoutCollector.wake`."""
        if self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "wake")
        self._switches.woken = True
        self._context.wake()

    def pause_until_settled(self) -> None:
        """See :meth:`stormlet.model.components.SpoutCollector.pause_until_settled`."""
        self._pause("pause_until_settled", own=False)

    def pause_until_own_settled(self) -> None:
        """See :meth:`stormlet.model.components.SpoutCollector.pause_until_own_settled`."""
        self._pause("pause_until_own_settled", own=True)

    def _pause(self, called: str, *, own: bool) -> None:
        if self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, called)
        # There is nothing to wait for, and nothing will be settled that could end the pause.
        if own and not self._tracker.pending:
            self._switches.resume()
            self._context.wake()
        else:
            self._switches.pause(own=own)

    def withdraw(self, message_ids: Iterable[object]) -> None:
        """See :meth:`stormlet.model.components.SpoutCollector.withdraw`."""
        if self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "withdraw")
        raise RuntimeError(
            f"{self._plan.name} withdraws messages that the engine does not keep; derive from ReliableSpout"
        )

    def end_epoch(self) -> None:
        """See :meth:`stormlet.model.components.SpoutCollector.end_epoch`."""
        if self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "end_epoch")
        self._tracker.end_epoch()
        self._switches.sated = True

    def begin_epoch(self, number: int, line: str) -> SourceEpoch:
        """See :meth:`stormlet.model.components.SpoutCollector.begin_epoch`."""
        if self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "begin_epoch")
        return self._tracker.begin_epoch(number, line)

    async def dead_letter(
        self,
        value: object,
        failure: Failure,
        *,
        message_id: object = None,
        attempts: int = 1,
        origin: object = None,
        history: tuple[Failure, ...] = (),
    ) -> None:
        """See :meth:`stormlet.model.components.SpoutCollector.dead_letter`."""
        if self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "dead_letter")
        _check_failures(self._plan, (failure, *history))
        _check_attempt(self._plan, "attempts", attempts)
        letter = DeadLetter(self._plan.component, value, message_id, attempts, failure, origin, history)
        await self._tracker.dead_letter(letter)

    def emit(
        self,
        value: object,
        *,
        message_id: object = None,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
        origin: object = None,
        attempt: int = 1,
    ) -> tuple[int, ...]:
        """See :meth:`stormlet.model.components.SpoutCollector.emit`."""
        tracker = self._tracker
        if (self._strict or not self._outbox.armed) and self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "emit")
        # Only what the user has given is checked, as most emits give neither.
        if attempt != 1:
            _check_attempt(self._plan, "attempt", attempt)
        if self._switches.stopping:
            raise _stopping(self._plan)
        lineage = lineage_now(self._topology, origin, attempt)
        is_tracked = message_id is not None or self._keeps_all
        tree = self._tree(value, message_id, stream, task, lineage) if is_tracked else None
        reached = tracker.emit(value, stream, task, lineage, tree)
        if tracker.outcomes and not self._switches.attentive:
            self._context.attend_soon()
        return reached

    def emit_many(
        self,
        values: Sequence[object],
        *,
        message_ids: Sequence[object],
        origins: Sequence[object] | None = None,
        attempt: int | Sequence[int] = 1,
    ) -> None:
        """See :meth:`stormlet.model.components.SpoutCollector.emit_many`."""
        tracker = self._tracker
        if self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "emit_many")
        attempts = attempt if isinstance(attempt, Sequence) else None
        if attempt != 1:
            for one in attempts or (attempt,):
                _check_attempt(self._plan, "attempt", one)
        if self._switches.stopping:
            raise _stopping(self._plan)
        _check_messages(values, message_ids, origins, attempts)
        lineages = self._lineages(len(values), origins, attempt)
        # Made before the first is emitted: a bad message id must not leave half of the batch behind.
        trees = self._trees(values, message_ids, lineages)
        try:
            tracker.emit_many(DEFAULT_STREAM, zip(values, lineages, trees, strict=True))
        finally:
            if tracker.outcomes:
                self._context.attend_soon()

    def _lineages(
        self, count: int, origins: Sequence[object] | None, attempt: int | Sequence[int]
    ) -> Sequence[Lineage]:
        # No user code runs from here on that could set variables.
        shared = lineage_now(self._topology, None, attempt if isinstance(attempt, int) else 1)
        context = shared.context
        if isinstance(attempt, int):
            if origins is None:
                return [shared] * count
            return [Lineage(attempt, origin, context) for origin in origins]
        origins = [None] * count if origins is None else origins
        return [Lineage(number, origin, context) for number, origin in zip(attempt, origins, strict=True)]

    def _tree(
        self, value: object, message_id: object, stream: str, task: int | None, lineage: Lineage
    ) -> OpenTree:
        return new_tree(message_id)

    def _trees(
        self, values: Sequence[object], message_ids: Sequence[object], lineages: Sequence[Lineage]
    ) -> Sequence[OpenTree]:
        return [new_tree(message_id) for message_id in message_ids]

    def emit_threadsafe(
        self,
        value: object,
        *,
        message_id: object = None,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
        origin: object = None,
        attempt: int = 1,
    ) -> Future[tuple[int, ...]]:
        """See :meth:`stormlet.model.components.SpoutCollector.emit_threadsafe`."""
        emit = partial(
            self.emit,
            value,
            message_id=message_id,
            stream=stream,
            task=task,
            origin=origin,
            attempt=attempt,
        )
        return self.threads.emit(emit)


class ReliableSpoutOut(SpoutOut):
    """The collector of a ``ReliableSpout``: what has a message id is kept and replayed."""

    __slots__ = ()

    def withdraw(self, message_ids: Iterable[object]) -> None:
        """See :meth:`stormlet.model.components.SpoutCollector.withdraw`."""
        if self._outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "withdraw")
        self._tracker.withdraw(message_ids)
        self._context.attend_soon()  # somebody may wait for those that have waited for a replay

    def _tree(
        self, value: object, message_id: object, stream: str, task: int | None, lineage: Lineage
    ) -> OpenTree:
        return spout_message(value, stream, task, lineage, message_id)

    def _trees(
        self, values: Sequence[object], message_ids: Sequence[object], lineages: Sequence[Lineage]
    ) -> Sequence[OpenTree]:
        return [
            spout_message(value, DEFAULT_STREAM, None, lineage, message_id)
            for value, message_id, lineage in zip(values, message_ids, lineages, strict=True)
        ]


def _stopping(plan: TaskPlan) -> TopologyStopping:
    return TopologyStopping(f"{plan.name} emits while the topology is draining")


def _check_attempt(plan: TaskPlan, name: str, attempt: object) -> None:
    if not is_int(attempt, 1):
        raise InvalidEmit(f"{plan.name} gives {name}={attempt!r}, which must be an int from 1")


def _check_failures(plan: TaskPlan, failures: Sequence[object]) -> None:
    for each in failures:
        if not isinstance(each, Failure):
            raise TypeError(
                f"dead_letter of {plan.name} was given {shortened(each)}, which is no "
                f"Failure; hand on what fail(message_id, failure) got, or Failure(FailureKind.FAILED, reason=...)"
            )


def _check_messages(
    values: Sequence[object],
    message_ids: Sequence[object],
    origins: Sequence[object] | None,
    attempts: Sequence[int] | None,
) -> None:
    others = {"origins": origins, "attempts": attempts}
    given_too = {name: len(each) for name, each in others.items() if each is not None}
    if any(length != len(values) for length in (len(message_ids), *given_too.values())):
        given = f"{len(values)} values with {len(message_ids)} message ids"
        more = "".join(f" and {length} {name}" for name, length in given_too.items())
        raise ValueError(f"emit_many needs as many of each, and got {given}{more}")
    if any(map(is_, message_ids, repeat(None))):
        raise ValueError("emit_many needs message ids that are not None; emit tracks no value without one")
