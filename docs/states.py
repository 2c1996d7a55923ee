"""Writes ``docs/states.md`` from the tables in ``stormlet/core/life.py``: ``python docs/states.py``.

A test holds that it was run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from stormlet.core.life import OUTBOX, TASK, OutboxEvent, OutboxState, TaskEvent, TaskState

PAGE = Path(__file__).with_name("states.md")

HEAD = """\
# States

<!-- Written by docs/states.py from stormlet/core/life.py; change that. -->

A task and its outbox have one state each. These tables are the ones that the engine moves them by: an event that a
state's row does not have cannot happen there, and raises. The reasons stand in `stormlet/core/life.py`.
"""


def page() -> str:
    """The whole page."""
    task = table({state.value: _texts(events) for state, events in TASK.items()})
    outbox = table({_spelt(state): _spelt_texts(events) for state, events in OUTBOX.items()})
    return "\n".join((HEAD, "## A task\n", *task, "", "## An outbox\n", *outbox, ""))


def table(rows: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """A row for each state, a column for each event."""
    events = list(dict.fromkeys(event for row in rows.values() for event in row))
    yield f"| state | {' | '.join(events)} |"
    yield "| --- " * (len(events) + 1) + "|"
    for state, row in rows.items():
        yield f"| **{state}** | {' | '.join(row.get(event, '') for event in events)} |"


def _texts(events: Mapping[TaskEvent, TaskState]) -> Mapping[str, str]:
    return {event.value: after.value for event, after in events.items()}


def _spelt_texts(events: Mapping[OutboxEvent, OutboxState]) -> Mapping[str, str]:
    return {event.value: _spelt(after) for event, after in events.items()}


def _spelt(state: OutboxState) -> str:
    return state.name.lower().replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
