"""The states of a task and of its outbox, as tables: the only place where a state follows from another one.

Theory of operation
-------------------
A task has one state at a time, and :meth:`~stormlet.runtime.life.Life.change` moves it by the table below. An event
that the table does not have raises :class:`IllegalTransition`, in tests and in production: an engine in a state that
nobody has thought of would lose messages silently.

A task is *new* until its ``prepare`` or ``open`` has returned. Then it is *working*, until one of these happens:

- Its own code raises. The coroutine unwinds at once, and the task is *reviving*.
- Somebody has it die: a call that runs beside it has raised, or it is killed. It is *dying* until its present step is
  over, then *cancelled*, and reviving as soon as its coroutine has unwound.
- The end of the run cancels it. It is *ending* from then on, whatever its state was, and is not revived.

A task that is reviving has another instance made, after a pause, and works again. One that may not be revived, or that
is ending, is *leaving*: its ``cleanup`` or ``close`` runs, which nothing may cut short. Then it has *ended*.

An outbox keeps what its task has not sent. It is *idle* while no flush is certain to come. The first unsent item arms
it: the loop will flush it in one of its next turns. In a slice nothing needs to be armed, as the end of the slice
flushes. A flush that was scheduled before the slice began still comes, and so both may be the case at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum


class TaskState(Enum):
    """The states of a task's life (law C1 to C5, S3)."""

    NEW = "new"
    WORKING = "working"
    DYING = "dying"
    """It will be cancelled as soon as its present step is over."""
    CANCELLED = "cancelled"
    """Its coroutine was cancelled, to have it die."""
    REVIVING = "reviving"
    ENDING = "ending"
    LEAVING = "leaving"
    ENDED = "ended"


class TaskEvent(Enum):
    """Moves a task from one state to the next."""

    BEGIN = "begins to work"
    DIE = "is to die"
    CANCEL = "is cancelled, to die"
    DIED = "has died"
    END = "is cancelled, to end"
    LEAVE = "cleans up"
    OVER = "is over"


class OutboxState(IntEnum):
    """The states of an outbox: is a flush certain to come (law F1)?"""

    IDLE = 0
    ARMED = 1
    IN_SLICE = 2
    ARMED_IN_SLICE = 3


class OutboxEvent(Enum):
    """Moves an outbox from one state to the next."""

    ENTER = "a slice begins"
    SUSPEND = "user code is awaited"
    LEAVE = "the slice ends"
    ARM = "a flush is scheduled"
    FLUSH = "the scheduled flush comes"


NO_STATE = -1


class IllegalTransition(RuntimeError):
    """An event that cannot happen in this state: a fault of stormlet's."""


_WORKING, _CANCELLED, _ENDING = TaskState.WORKING, TaskState.CANCELLED, TaskState.ENDING
_REVIVING, _LEAVING, _ENDED = TaskState.REVIVING, TaskState.LEAVING, TaskState.ENDED

TASK: Mapping[TaskState, Mapping[TaskEvent, TaskState]] = {
    TaskState.NEW: {
        TaskEvent.BEGIN: _WORKING,
        TaskEvent.END: _ENDING,
        TaskEvent.OVER: _ENDED,  # prepare or open has raised
    },
    TaskState.WORKING: {
        TaskEvent.DIE: TaskState.DYING,
        TaskEvent.DIED: _REVIVING,
        TaskEvent.END: _ENDING,
        TaskEvent.LEAVE: _LEAVING,  # user code has raised what ends the process
    },
    TaskState.DYING: {
        TaskEvent.CANCEL: _CANCELLED,
        TaskEvent.DIED: _REVIVING,  # its own step has raised
        TaskEvent.END: _ENDING,
        TaskEvent.LEAVE: _LEAVING,
    },
    TaskState.CANCELLED: {
        TaskEvent.DIED: _REVIVING,
        TaskEvent.END: _ENDING,
        TaskEvent.LEAVE: _LEAVING,
    },
    TaskState.REVIVING: {
        TaskEvent.BEGIN: _WORKING,
        TaskEvent.END: _ENDING,
        TaskEvent.LEAVE: _LEAVING,  # it may not be restarted
    },
    TaskState.ENDING: {
        TaskEvent.END: _ENDING,  # the end is gone through twice where it raises
        TaskEvent.LEAVE: _LEAVING,
        TaskEvent.OVER: _ENDED,  # it had not begun
    },
    TaskState.LEAVING: {TaskEvent.OVER: _ENDED},
    TaskState.ENDED: {},
}
"""The state after each event."""

_IDLE, _ARMED = OutboxState.IDLE, OutboxState.ARMED
_IN_SLICE, _BOTH = OutboxState.IN_SLICE, OutboxState.ARMED_IN_SLICE

OUTBOX: Mapping[OutboxState, Mapping[OutboxEvent, OutboxState]] = {
    OutboxState.IDLE: {
        OutboxEvent.ENTER: _IN_SLICE,
        OutboxEvent.SUSPEND: _IDLE,
        OutboxEvent.LEAVE: _IDLE,
        OutboxEvent.ARM: _ARMED,
    },
    OutboxState.ARMED: {
        OutboxEvent.ENTER: _BOTH,
        OutboxEvent.SUSPEND: _ARMED,
        OutboxEvent.LEAVE: _ARMED,
        OutboxEvent.FLUSH: _IDLE,
    },
    OutboxState.IN_SLICE: {
        OutboxEvent.ENTER: _IN_SLICE,
        OutboxEvent.SUSPEND: _IDLE,  # and armed at once
        OutboxEvent.LEAVE: _IDLE,
    },
    OutboxState.ARMED_IN_SLICE: {
        OutboxEvent.ENTER: _BOTH,
        OutboxEvent.SUSPEND: _ARMED,
        OutboxEvent.LEAVE: _ARMED,
        OutboxEvent.FLUSH: _IN_SLICE,
    },
}
"""The state after each event."""


def task_state(state: TaskState, event: TaskEvent) -> TaskState:
    """The state that follows. Raises :class:`IllegalTransition` where none does."""
    after = TASK[state].get(event)
    if after is None:
        raise IllegalTransition(f"a task that is {state.value} {event.value}")
    return after


def outbox_moves(event: OutboxEvent) -> tuple[int, ...]:
    """The state after this event, by the state before; :data:`NO_STATE` where the event cannot happen."""
    return tuple(int(OUTBOX[state].get(event, NO_STATE)) for state in OutboxState)
