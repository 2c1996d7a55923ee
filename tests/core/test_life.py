"""The tables of states: every row, and what is not in them."""

from __future__ import annotations

import pytest

from stormlet.core.life import (
    NO_STATE,
    OUTBOX,
    TASK,
    IllegalTransition,
    OutboxEvent,
    OutboxState,
    TaskEvent,
    TaskState,
    outbox_moves,
    task_state,
)

LIVES = {
    "a life": "begin end leave over",
    "one that dies of its own exception": "begin died begin end leave over",
    "one that is killed": "begin die cancel died begin end leave over",
    "one that raises while it is to be killed": "begin die died begin end leave over",
    "one that may not be restarted": "begin died leave over",
    "one whose instance cannot be made": "over",
    "one that ends before it works": "end over",
    "one that ends while it is revived": "begin died end leave over",
    "one that ends while it dies": "begin die end leave over",
    "one that ends while it is cancelled": "begin die cancel end end leave over",
    "one that is interrupted": "begin leave over",
}


@pytest.mark.parametrize("life", LIVES)
def test_a_life_of_a_task(life: str) -> None:
    """Every life that a task may have is a way through the table, from new to ended."""
    state = TaskState.NEW
    for event in LIVES[life].split():
        state = task_state(state, TaskEvent[event.upper()])
    assert state is TaskState.ENDED


def test_the_lives_pass_every_row_but_rare_interruptions() -> None:
    """The lives above leave out only those rows in which the process is interrupted while a task dies."""
    passed = set()
    for life in LIVES.values():
        state = TaskState.NEW
        for event in life.split():
            passed.add((state, TaskEvent[event.upper()]))
            state = task_state(state, TaskEvent[event.upper()])
    rows = {(state, event) for state, events in TASK.items() for event in events}
    assert rows - passed == {(TaskState.DYING, TaskEvent.LEAVE), (TaskState.CANCELLED, TaskEvent.LEAVE)}


@pytest.mark.parametrize("state", TaskState)
@pytest.mark.parametrize("event", TaskEvent)
def test_an_event_of_a_task(state: TaskState, event: TaskEvent) -> None:
    """It leads to the state of its row, and raises where it has none."""
    if event in TASK[state]:
        assert task_state(state, event) is TASK[state][event]
    else:
        with pytest.raises(IllegalTransition, match=f"a task that is {state.value} {event.value}"):
            task_state(state, event)


def test_a_task_that_leaves_is_not_cancelled_again() -> None:
    """Nothing but its end comes after ``cleanup`` has begun."""
    assert TASK[TaskState.LEAVING] == {TaskEvent.OVER: TaskState.ENDED}
    assert TASK[TaskState.ENDED] == {}


@pytest.mark.parametrize("state", OutboxState)
@pytest.mark.parametrize("event", OutboxEvent)
def test_an_event_of_an_outbox(state: OutboxState, event: OutboxEvent) -> None:
    """The moves are those of the table, by the number of the state before."""
    assert outbox_moves(event)[state] == OUTBOX[state].get(event, NO_STATE)


@pytest.mark.parametrize("state", OutboxState)
def test_an_outbox_is_armed_once(state: OutboxState) -> None:
    """A flush is scheduled only where none is certain, and comes only where one was scheduled."""
    assert (OutboxEvent.ARM in OUTBOX[state]) == (state is OutboxState.IDLE)
    scheduled = state in (OutboxState.ARMED, OutboxState.ARMED_IN_SLICE)
    assert (OutboxEvent.FLUSH in OUTBOX[state]) == scheduled
