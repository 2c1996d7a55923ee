"""Outcomes as the user gets them, held against the verdicts: ``ack`` and ``fail`` of ``Spout`` classes (law S1),
and dead letters (law S6)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.core.trees import OpenTree
from stormlet.model.components import Spout
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout.messages import HostMessage, Message

Violation = Callable[..., None]
"""Notes that the law was broken: a text with a ``{}`` for each value, and the values."""
Note = Callable[[object, Failure | None], None]
"""Called with each message id and failure that an instance gets."""
Around = Callable[[str, Callable[[], Awaitable[None] | None]], Awaitable[None] | None]
"""Calls a method of this name."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a message id, without the failure itself, which may get a longer reason on its way."""

    message_id: object
    kind: FailureKind | None

    @classmethod
    def of(cls, message_id: object, failure: Failure | None) -> Outcome:
        """The outcome with this failure."""
        return cls(message_id, None if failure is None else failure.kind)

    def agrees(self, other: Outcome) -> bool:
        """True if it is the same; message ids need not be comparable."""
        return self.message_id is other.message_id and self.kind is other.kind

    def __str__(self) -> str:
        return f"{self.message_id!r} ({'acked' if self.kind is None else self.kind.value})"


class SpoutOutcomes:
    """The outcomes that instances of ``Spout`` classes get: each once, in the order of the verdicts."""

    def __init__(self, violation: Violation) -> None:
        self._violation = violation
        self._due: dict[TaskPlan, deque[Outcome]] = {}
        self._withdrawn: dict[TaskPlan, Callable[[], int]] = {}
        self._passed = Counter[TaskPlan]()

    def expect(self, plan: TaskPlan, withdrawn: Callable[[], int]) -> None:
        """The instances of this task have an ``ack`` or a ``fail``, but hear nothing of so many that are ``withdrawn``
        (law S9)."""
        self._due.setdefault(plan, deque())
        self._withdrawn[plan] = withdrawn

    def decided(self, plan: TaskPlan, tree: OpenTree) -> None:
        """The task has an outcome, which its instance must get unless the message is replayed or given up."""
        due = self._due.get(plan)
        kept = isinstance(tree, Message) and tree.failure is not None
        if due is not None and not kept and type(tree) is not HostMessage:
            due.append(Outcome.of(tree.message_id, tree.failure))

    def received(self, plan: TaskPlan, message_id: object, failure: Failure | None) -> None:
        """The ``ack`` or ``fail`` of an instance is called."""
        received, due = Outcome.of(message_id, failure), self._due[plan]
        while due and not due[0].agrees(received) and self._is_withdrawn(plan):
            due.popleft()
        if not due:
            self._violation("{} got {} without a verdict", plan.name, str(received))
        elif not (expected := due.popleft()).agrees(received):
            self._violation("{} got {}, and not {}", plan.name, str(received), str(expected))

    def _is_withdrawn(self, plan: TaskPlan) -> bool:
        """Pass over one more outcome, if so many messages are withdrawn."""
        if self._passed[plan] >= self._withdrawn[plan]():
            return False
        self._passed[plan] += 1
        return True

    def check_all_received(self) -> None:
        """The run has finished."""
        for plan, due in self._due.items():
            while due and self._is_withdrawn(plan):
                due.popleft()
            if due:
                self._violation("{} never got {}", plan.name, str(due[0]))

    def forget(self) -> None:
        """The run is over."""
        self._due.clear()


class WatchedSpout:
    """The ``ack`` and ``fail`` of an instance, which are noted first, and around which something may raise."""

    def __init__(self, spout: Spout[Any], note: Note, around: Around) -> None:
        self._spout = spout
        self._note = note
        self._around = around

    def ack(self, message_id: object) -> Awaitable[None] | None:
        """See :meth:`stormlet.Spout.ack`."""
        self._note(message_id, None)
        return self._around("ack", partial(self._spout.ack, message_id))

    def fail(self, message_id: object, failure: Failure) -> Awaitable[None] | None:
        """See :meth:`stormlet.Spout.fail`."""
        self._note(message_id, failure)
        return self._around("fail", partial(self._spout.fail, message_id, failure))


RECENT = 100
"""Messages with a dead letter that are remembered, in case that more comes of them."""


class GivenUp:
    """The dead letters: one for each message that the engine kept and gave up, and none of any other."""

    def __init__(self, violation: Violation) -> None:
        self._violation = violation
        self._written: dict[Message, tuple[Failure, ...]] = {}
        """The last messages that have their letter, and what that said of their attempts."""
        self._failed = defaultdict[TaskPlan, dict[Message, None]](dict)
        """Messages whose last attempt has failed; they are replayed or given up."""

    def decided(self, plan: TaskPlan, tree: OpenTree) -> None:
        """An attempt has an outcome."""
        if not isinstance(tree, Message) or type(tree) is HostMessage:
            return
        if tree.failure is None:
            self._failed[plan].pop(tree, None)
        else:
            self._failed[plan][tree] = None

    def replayed(self, plan: TaskPlan, tree: OpenTree) -> None:
        """An attempt begins."""
        if isinstance(tree, Message):
            self._failed[plan].pop(tree, None)
            if tree in self._written:
                self._violation("{} of {} begins again after its dead letter", tree.value, plan.name)

    def written(self, letter: DeadLetter, *, expected: bool) -> None:
        """The sink gets a letter; ``expected`` unless the component's code may have written it itself."""
        for plan, failed in self._failed.items():
            if plan.component != letter.component:
                continue
            for message in failed:
                # Of two equal messages of two tasks each has a history of its own.
                if message.history and message.history is letter.history:
                    del failed[message]
                    self._remember(message)
                    return
        if letter.history and any(letter.history is history for history in self._written.values()):
            self._violation("a second dead letter of {} has {}", letter.component, letter.value)
        elif expected:
            self._violation(
                "a dead letter of {} has {}, which was not given up", letter.component, letter.value
            )

    def _remember(self, message: Message) -> None:
        self._written[message] = message.history
        if len(self._written) > RECENT:
            del self._written[next(iter(self._written))]

    def check_all_written(self, plan: TaskPlan, withdrawn: int) -> None:
        """The run has finished, and this task's messages go to the dead letters, but so many that are withdrawn may
        have failed without (law S9)."""
        for message in list(self._failed[plan])[withdrawn:]:
            self._violation("{} gave up {}, and no dead letter has it", plan.name, message.value)

    def forget(self) -> None:
        """The run is over."""
        self._failed.clear()
        self._written.clear()
