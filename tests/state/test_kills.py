"""Epochs are whole whenever the process is killed: a short form of ``python -m tests.state.kills``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.state.killed import POINTS, POINTS_OF_ROCKSDB
from tests.state.kills import kills


@pytest.mark.untraced
def test_kills_leave_whole_epochs(tmp_path: Path) -> None:
    """Killed at random moments, and at twelve points of a commit, a run leaves all epochs that it has told to be
    durable, or one more, and nothing of the next one."""
    found = list(kills(tmp_path, 5, 24))
    assert [wrong for _, wrong in found if wrong] == []
    assert Counter(point for point, _ in found) == {None: 12, **dict.fromkeys(POINTS, 1)}


@pytest.mark.untraced
def test_kills_leave_whole_epochs_in_rocksdb(tmp_path: Path) -> None:
    """Its batches are there as a whole or not at all."""
    found = list(kills(tmp_path, 5, 12, "rocksdb"))
    assert [wrong for _, wrong in found if wrong] == []
    assert Counter(point for point, _ in found) == {None: 6, **dict.fromkeys(POINTS_OF_ROCKSDB, 2)}
