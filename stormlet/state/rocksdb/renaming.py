"""All that is kept under a component's id: its states, the positions of its tasks, and rows that it has not had."""

from __future__ import annotations

from rocksdict import WriteBatch

from stormlet.core.state.commits import StateId
from stormlet.state.refusals import component_of, refuse_no_state, refuse_taken, refuse_unknown
from stormlet.state.rocksdb.database import Database, end_of, new_batch
from stormlet.state.rocksdb.layout import (
    OUTBOX,
    POSITIONS,
    OutboxRow,
    decoded,
    encoded,
    prefix_of,
    state_key,
    state_rows,
)


def drop(database: Database, component: str) -> None:
    """Forget all of it. Raises :class:`~stormlet.errors.StateUnusable` if there is nothing."""
    refuse_unknown(database.path, component, components(database))
    batch = new_batch()
    for id, row in state_rows(database):
        if id.component == component:
            _drop_state(batch, id, row.number)
    for key, _ in database.scan(POSITIONS):
        if component_of(_task(key)) == component:
            batch.delete(key)
    for key, record in database.scan(OUTBOX):
        if decoded(database.path, record, OutboxRow).committer == component:
            batch.delete(key)
    database.write(batch)


def drop_state(database: Database, state: StateId) -> None:
    """Forget one state. Raises :class:`~stormlet.errors.StateUnusable` if there is none."""
    numbers = {id: row.number for id, row in state_rows(database)}
    refuse_no_state(database.path, state, numbers)
    batch = new_batch()
    _drop_state(batch, state, numbers[state])
    database.write(batch)


def _drop_state(batch: WriteBatch, id: StateId, number: int) -> None:
    batch.delete(state_key(id))
    batch.delete_range(prefix_of(number), end_of(prefix_of(number)))


def rename(database: Database, old: str, new: str) -> None:
    """Have it go by another id. Raises :class:`~stormlet.errors.StateUnusable` if there is nothing, or if there is
    something of that other id."""
    known = components(database)
    refuse_unknown(database.path, old, known)
    refuse_taken(database.path, old, new, known)
    batch = new_batch()
    for id, row in state_rows(database):
        if id.component == old:
            batch.delete(state_key(id))
            batch.put(state_key(StateId(new, id.state)), encoded(row))
    for key, position in database.scan(POSITIONS):
        if component_of(_task(key)) == old:
            batch.delete(key)
            batch.put(POSITIONS + f"{new}{_task(key).removeprefix(old)}".encode(), position)
    for key, record in database.scan(OUTBOX):
        rows = decoded(database.path, record, OutboxRow)
        if rows.committer == old:
            batch.put(key, encoded(OutboxRow(rows.epoch, new, rows.blob)))
    database.write(batch)


def components(database: Database) -> list[str]:
    """The ids by which something is kept."""
    states = [id.component for id, _ in state_rows(database)]
    committers = [decoded(database.path, record, OutboxRow).committer for _, record in database.scan(OUTBOX)]
    sources = [component_of(_task(key)) for key, _ in database.scan(POSITIONS)]
    return list(dict.fromkeys([*states, *committers, *sources]))


def _task(key: bytes) -> str:
    return key[len(POSITIONS) :].decode()
