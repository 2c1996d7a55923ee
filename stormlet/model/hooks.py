"""Task hooks: they hear of what a task emits, executes, acks and fails (Storm's ``ITaskHook`` and its infos)."""

from __future__ import annotations

from typing import Any

import msgspec

from stormlet.core.outcomes import Failure
from stormlet.core.tuples import Tuple
from stormlet.model.components import TaskContext


class EmitInfo(msgspec.Struct, frozen=True):
    """A value that a spout or a bolt has emitted."""

    value: object
    stream: str
    task: int
    """The id of the task that has emitted it."""
    out_tasks: tuple[int, ...]
    """The ids of the tasks that it was delivered to."""


class BoltExecuteInfo(msgspec.Struct, frozen=True):
    """An input whose execution is over, without an exception."""

    tup: Tuple[Any]
    task: int
    """The id of the task that has executed it."""
    execute_latency: float
    """Seconds, awaits included, without waits for room (law B6)."""


class BoltAckInfo(msgspec.Struct, frozen=True):
    """An input that was acked."""

    tup: Tuple[Any]
    task: int
    """The id of the task that has acked it."""
    process_latency: float
    """Seconds from the beginning of its execution to its ack."""


class BoltFailInfo(msgspec.Struct, frozen=True):
    """An input that was failed: by the bolt, by an exception, or because its task died."""

    tup: Tuple[Any]
    task: int
    """The id of the task that has failed it."""
    fail_latency: float
    """Seconds from the beginning of its execution."""


class SpoutAckInfo(msgspec.Struct, frozen=True):
    """A message whose tree is complete."""

    message_id: object
    task: int
    """The id of the task that has emitted it."""
    complete_latency: float
    """Seconds from its emit."""


class SpoutFailInfo(msgspec.Struct, frozen=True):
    """An attempt at a message that has failed, whether it is emitted again or not."""

    message_id: object
    task: int
    """The id of the task that has emitted it."""
    fail_latency: float
    """Seconds from its emit."""
    failure: Failure


class TaskHook:
    """The base of hooks (Storm's ``BaseTaskHook``): override what you want to hear of.

    ``topology.run(hooks=[Meter])`` makes one for each task of the topology, as it makes bolts: ``Meter`` is a class, or
    a function without parameters, such as ``partial(Meter, registry)``. It hears of its task alone, across restarts.

    All methods are plain functions and are called on the loop, in the midst of the work: they must not block, emit, ack
    or fail. One that raises is logged and its hook removed; the task goes on. What is not overridden costs nothing, and
    neither do hooks where there are none.
    """

    def prepare(self, context: TaskContext) -> None:
        """Called before everything else, with the task's knowledge of itself."""

    def emit(self, info: EmitInfo) -> None:
        """Called after a value was delivered. The acks that the engine sends are none."""

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """Called after an input was executed, and so after its ack if there was one."""

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """Called after an input was acked, by the bolt or for it (law B1)."""

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """Called after an input was failed."""

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """Called before the spout hears of a complete tree."""

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """Called before the spout hears of a failed attempt, or the engine emits its message again."""

    def cleanup(self) -> None:
        """Called when all tasks of the topology have ended."""


HOOKED = ("emit", "bolt_execute", "bolt_ack", "bolt_fail", "spout_ack", "spout_fail")
"""The methods that are called again and again."""
