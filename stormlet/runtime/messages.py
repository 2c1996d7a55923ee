"""Messages that the engine keeps until they are settled: values of generators, and what the host emitted."""

from __future__ import annotations

from typing import Any, Protocol

from stormlet.core.outcomes import Failure
from stormlet.core.plan import TaskPlan
from stormlet.core.tuples import Lineage
from stormlet.runtime.trees import Tree


class Message:
    """One value and what became of it so far."""

    __slots__ = ("history", "lineage", "message_id", "stream", "task", "value")

    def __init__(
        self, value: object, message_id: object, stream: str, task: int | None, lineage: Lineage
    ) -> None:
        self.value = value
        self.message_id = message_id
        self.stream = stream
        self.task = task
        self.lineage = lineage
        """What the tuples of the running attempt inherit."""
        self.history: tuple[Failure, ...] = ()
        """Why each attempt failed so far."""

    @property
    def attempts(self) -> int:
        """How many attempts have failed, those that do not count left out (law S6)."""
        return self.lineage.attempt - 1

    def failed(self, failure: Failure, *, counts: bool) -> None:
        """Note that the running attempt failed."""
        self.history += (failure,)
        if counts:
            self.lineage = self.lineage.of_next_attempt()


class SpoutMessage(Message):
    """A message of a ``ReliableSpout``, which hears its final outcome."""

    __slots__ = ()


class Buried:
    """A :class:`SpoutMessage` that is with the dead letters now, and whose spout was not told yet."""

    __slots__ = ("message_id",)

    def __init__(self, message_id: object) -> None:
        self.message_id = message_id


class HostMessage(Message):
    """A message that belongs to the ``Tree`` the host got for it (law C4)."""

    __slots__ = ("collected", "max_attempts", "root", "tree")

    def __init__(
        self,
        value: object,
        stream: str,
        lineage: Lineage,
        tree: Tree[Any],
        max_attempts: int,
        collected: dict[int, list[object]] | None,
    ) -> None:
        super().__init__(value, None, stream, None, lineage)
        self.tree = tree
        self.max_attempts = max_attempts
        self.collected = collected
        """Where the values of the stream that the host asked for are collected, by root."""
        self.root = 0
        """The root under which the values of the running attempt are collected."""


class MessageObserver(Protocol):
    """Looks on at the messages of one run. A message is a :class:`Message`, or the id under which a ``Spout`` class
    knows it."""

    def tracked(self, task: TaskPlan, message: object, value: object) -> None:
        """This spout task has emitted it; what the engine replays is not told again."""
        ...

    def settled(self, task: TaskPlan, message: object, failure: Failure | None) -> None:
        """An attempt at it has this outcome, None for an ack."""
        ...
