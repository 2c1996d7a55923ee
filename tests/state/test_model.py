"""Random programs, beside a plain account of all that they have committed."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from stormlet.core.state.commits import Store, Stored
from stormlet.errors import StateUnusable
from stormlet.state.memory import MemoryStore
from stormlet.state.sqlite.file import StateFile
from tests.state.programs import Program, differences

LIVES = st.lists(st.integers(0, 40), min_size=1, max_size=4)
SEEDS = st.integers(0, 2**32)
HISTORIES = st.sampled_from([0.0, 3.0, 20.0, 1000.0])
"""Seconds, of which each epoch takes one."""


def run(store: Store, seed: int, lives: list[int], history: float) -> None:
    """Each life takes up what is durable."""
    for epochs in lives:
        Program(store, seed, history).run(epochs)


def kept(store: Store, last: int) -> list[Stored]:
    """All epochs that can be read."""
    found = list[Stored]()
    for epoch in range(last, -1, -1):
        try:
            found.append(store.at(epoch))
        except StateUnusable:
            break
    return found


@settings(max_examples=60, deadline=None)
@given(SEEDS, LIVES, HISTORIES)
def test_what_is_durable_is_what_was_committed(seed: int, lives: list[int], history: float) -> None:
    """After any number of lives, with rounds that end in their midst, the last epoch is there, and so is each one
    before it that can be read: at least those of the history."""
    store, last = MemoryStore(), sum(lives)
    run(store, seed, lives, history)
    assert list(differences(store.at(last), seed)) == []
    found = kept(store, last)
    assert len(found) >= min(history, last) + 1
    for stored in found:
        assert list(differences(stored, seed, past=True)) == []


@settings(max_examples=8, deadline=None)
@given(SEEDS, LIVES, HISTORIES)
def test_a_file_holds_what_memory_holds(seed: int, lives: list[int], history: float) -> None:
    """Row for row, in each epoch, also when it is closed and opened after each life."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "words.state")
        with closing(StateFile(path, "words")) as file:
            memory = MemoryStore(file.load().line)
        run(memory, seed, lives, history)
        for epochs in lives:
            with closing(StateFile(path, "words")) as file:
                Program(file, seed, history).run(epochs)
        with closing(StateFile(path, "words")) as file:
            assert kept(file, sum(lives)) == kept(memory, sum(lives))
            assert file.load() == memory.load()
