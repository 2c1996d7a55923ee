"""States of bolts in a store, over runs that end soon."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from stormlet.core.state import rounds
from stormlet.core.state.commits import Commit, StateId, Store
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared


@pytest.fixture(autouse=True, scope="module")
def rounds_at_once() -> Iterator[None]:
    """Rounds of small states, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "LEAST_LOG", 0)
        yield


ID = StateId("count", "total")
KEYS = 500


def started(store: Store) -> State:
    """The state of a run, as the store has it."""
    state = State(ID, Declared("value", int, key=str))
    state.load(store.load().states.get(ID, ()))
    return state


def live(store: Store, epochs: int, random: Random) -> dict[str, int]:
    """One run, which counts random keys; return all counts."""
    state, last = started(store), store.load().epoch
    table = state.tables[0]
    for epoch in range(last + 1, last + 1 + epochs):
        for key in random.choices(range(KEYS), k=20):
            table.put(f"key {key}", (table.get(f"key {key}") or 0) + 1)
        store.commit(Commit(epoch, float(epoch), {}, state.seal()))
    return dict(table.committed_items())


def test_short_lives_leave_a_short_log(store: Store) -> None:
    """Runs that end in the midst of their rounds lose no key, and what is kept does not grow with their number."""
    random = Random(1)
    for _ in range(150):
        counts = live(store, random.randint(1, 4), random)
    state = started(store)
    assert dict(state.tables[0].committed_items()) == counts
    assert len(counts) == KEYS
    assert sum(map(len, store.load().states[ID])) < 8 * state.size_in_bytes
