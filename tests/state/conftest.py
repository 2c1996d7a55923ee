"""Stores to test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from stormlet.core.state.commits import Store
from stormlet.state.memory import MemoryStore
from stormlet.state.sqlite.file import StateFile
from stormlet.state.stores import owned


@pytest.fixture
def file(tmp_path: Path) -> Iterator[StateFile]:
    """A new state file of the topology ``words``."""
    with closing(StateFile(tmp_path / "words.state", "words")) as store:
        yield store


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store of each kind."""
    with ExitStack() as stack:
        if request.param == "memory":
            yield MemoryStore()
        else:
            yield stack.enter_context(closing(StateFile(tmp_path / "words.state", "words")))


@pytest.fixture(params=["memory", "file", "rocksdb"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store of each kind, those without a past among them."""
    with ExitStack() as stack:
        if request.param == "memory":
            yield MemoryStore()
        else:
            ending = ".rocksdb" if request.param == "rocksdb" else ".state"
            yield stack.enter_context(closing(owned(tmp_path / f"words{ending}", "words")))


@pytest.fixture
def reopened(tmp_path: Path) -> Iterator[Callable[[], StateFile]]:
    """Opens ``words.state`` again; what it opened is closed at the end, or by the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(StateFile(tmp_path / "words.state", "words")))
