"""Messages that the engine keeps until they are settled: values of generators, and what the host emitted.

Each is its own open tree: one attempt runs at a time, and the next one begins when the last has its verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Final

from stormlet.core.directives import is_extension
from stormlet.core.outcomes import Failure, History
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import PLAIN, Lineage
from stormlet.runtime.tree import Tree

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython


def lineage_now(topology: Context, origin: object, attempt: int) -> Lineage:
    """Its attempt, its origin, and context variables that are not the topology's (law B10)."""
    # Copied, as there is no other way to see whether the caller has set any; the copy is of constant size.
    context = copy_context()
    if context == topology:
        return PLAIN if origin is None and attempt == 1 else Lineage(attempt, origin)
    return Lineage(attempt, origin, context)


NOTHING_YET: Final = History()


@cython.no_gc
@cython.cclass
class Message(OpenTree):
    """One value and what became of it so far."""

    __slots__ = ("history", "lineage", "stream", "task", "value")

    def __init__(
        self, value: object, stream: str, task: int | None, lineage: Lineage, *, message_id: object = None
    ) -> None:
        super().__init__(message_id=message_id)
        self.value = value
        self.stream = stream
        self.task = task
        self.lineage = lineage
        """The lineage that the tuples of the running attempt inherit."""
        self.history = NOTHING_YET
        """The failure of each attempt so far."""

    @property
    def attempts(self) -> int:
        """The number of failed attempts, without those that do not count (law S6)."""
        return self.lineage.attempt - 1

    @property
    def failures(self) -> int:
        """The number of failed attempts, with those that do not count."""
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


@cython.no_gc
@cython.cclass
class SpoutMessage(Message):
    """A message of a ``ReliableSpout``, which hears its final outcome."""

    __slots__ = ()


@cython.no_gc
@cython.cclass
class GivenUp(OpenTree):
    """The final outcome of a message that the engine has given up, after the dead letters have it."""

    __slots__ = ()


@cython.no_gc
@cython.cclass
class GivenAgain(OpenTree):
    """A message that is durable, and that its broker has given again: acked at once (law X8)."""

    __slots__ = ()


@cython.no_gc
@cython.cclass
class HostMessage(Message):
    """A message that belongs to the ``Tree`` the host got for it (law C4)."""

    __slots__ = ("collected", "max_attempts", "tree")

    def __init__(
        self,
        value: object,
        stream: str,
        lineage: Lineage,
        *,
        tree: Tree[Any],
        max_attempts: int,
        collected: dict[int, list[object]] | None,
    ) -> None:
        super().__init__(value, stream, None, lineage)
        self.tree = tree
        self.max_attempts = max_attempts
        self.collected = collected
        """The values of the stream that the host asked for, by root."""

    def collect_under(self, root: int) -> None:
        """An attempt begins: collect its values, and no longer those of the one before."""
        if self.collected is not None:
            # What a failed attempt had collected is no part of the result.
            self.collect_no_more()
            self.tree.values = self.collected[root] = []
        self.root = root

    def collect_no_more(self) -> None:
        """The attempt is over."""
        if self.collected is not None:
            self.collected.pop(self.root, None)


def spout_message(
    value: object, stream: str, task: int | None, lineage: Lineage, message_id: object
) -> SpoutMessage:
    """A message of a ``ReliableSpout`` that is emitted now. As calling the class does, at a fraction of the price."""
    message = SpoutMessage.__new__(SpoutMessage)
    message.checksum = 0
    message.spout = 0
    message.message_id = message_id
    message.failure = None
    message.value = value
    message.stream = stream
    message.task = task
    message.lineage = lineage
    message.history = NOTHING_YET
    message.root = 0
    return message


def last_with_id(messages: Sequence[Message]) -> Message | None:
    """Return the last of these messages that has a message id, by which its source knows where it was (law X8)."""
    return next((each for each in reversed(messages) if each.message_id is not None), None)


def kept_message(
    value: object, stream: str, task: int | None, lineage: Lineage, message_id: object
) -> Message:
    """A message that is emitted now. The same as calling the class, at a fraction of the price."""
    # Written out: the two constructors would be two calls more for each value of a generator.
    message = Message.__new__(Message)
    message.checksum = 0
    message.spout = 0
    message.message_id = message_id
    message.failure = None
    message.value = value
    message.stream = stream
    message.task = task
    message.lineage = lineage
    message.history = NOTHING_YET
    message.root = 0
    return message
