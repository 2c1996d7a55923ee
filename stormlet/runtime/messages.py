"""Messages that the engine keeps until they are settled: values of generators, and what the host emitted.

Each is its own open tree: one attempt runs at a time, and the next one begins when the last has its verdict.
"""

from __future__ import annotations

from typing import Any, Protocol

from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import Failure, History
from stormlet.core.plan import TaskPlan
from stormlet.core.tuples import Lineage
from stormlet.runtime.trees import Tree


class Message(OpenTree, eq=False):
    """One value and what became of it so far."""

    value: object
    stream: str
    task: int | None
    lineage: Lineage
    """What the tuples of the running attempt inherit."""
    history: History = History()
    """Why each attempt failed so far."""
    root: int = 0
    """The root of the running or last attempt; 0 before the first one that found room."""

    @property
    def attempts(self) -> int:
        """How many attempts have failed, those that do not count left out (law S6)."""
        return self.lineage.attempt - 1

    @property
    def failures(self) -> int:
        """How many attempts have failed, whether they count or not."""
        return len(self.history) + self.history.left_out

    def failed(self, failure: Failure, *, counts: bool) -> None:
        """Note that the running attempt failed."""
        self.history = self.history.and_also(failure)
        if counts:
            self.lineage = self.lineage.of_next_attempt()

    def forget_frames(self) -> None:
        """Let go of the frames of what its attempts raised, which keep alive the local variables of user code."""
        self.history = self.history.without_frames()
        self.failure = self.history[-1]


class SpoutMessage(Message, eq=False):
    """A message of a ``ReliableSpout``, which hears its final outcome."""


class Buried(OpenTree, eq=False):
    """What is left of a :class:`SpoutMessage` that is with the dead letters now, and whose spout was not told
    yet."""


class HostMessage(Message, kw_only=True, eq=False):
    """A message that belongs to the ``Tree`` the host got for it (law C4)."""

    tree: Tree[Any]
    max_attempts: int
    collected: dict[int, list[object]] | None
    """Where the values of the stream that the host asked for are collected, by root."""

    def collect_under(self, root: int) -> None:
        """An attempt begins: collect its values, and no longer those of the one before."""
        if self.collected is not None:
            self.collect_no_more()
            self.tree.values = self.collected[root] = []
        self.root = root

    def collect_no_more(self) -> None:
        """The attempt is over."""
        if self.collected is not None:
            self.collected.pop(self.root, None)


class MessageObserver(Protocol):
    """Looks on at the messages of one run. A :class:`Message` is one tree in all its attempts; what a ``Spout`` class
    keeps by itself is another tree in each."""

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        """This spout task begins an attempt: it emits the value."""
        ...

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        """An attempt has its outcome, and the task is about to be told."""
        ...
