"""Epochs are whole whenever the power is lost: a short form of ``python -m tests.state.power.losses``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.state.power.disk import Disk, Entry
from tests.state.power.losses import record, wrong

needs_a_compiler = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None,
    reason="what is written is recorded by a library in C",
)


def wrong_among(folder: Path, losses: int, *pragmas: str) -> list[list[str]]:
    """All losses after which something was wrong."""
    return [found for found in wrong(folder, record(folder, *pragmas), 2, losses) if found]


@needs_a_compiler
@pytest.mark.untraced
def test_what_was_told_survives_a_loss_of_power(tmp_path: Path) -> None:
    """So does a saved copy: a disk that has only what was synced, and any part of the rest, has all of them whole."""
    assert wrong_among(tmp_path, 150) == []


@needs_a_compiler
@pytest.mark.untraced
@pytest.mark.parametrize("pragma", ["synchronous=OFF", "synchronous=NORMAL"])
def test_without_a_sync_for_each_epoch_some_are_lost(tmp_path: Path, pragma: str) -> None:
    """So the test above can fail: it does when sqlite syncs less."""
    assert len(wrong_among(tmp_path, 40, pragma)) > 10


@needs_a_compiler
@pytest.mark.untraced
def test_what_was_told_survives_a_loss_of_power_in_rocksdb(tmp_path: Path) -> None:
    """A write of which the disk has a part is not taken for damage."""
    assert wrong_among(tmp_path, 150, "rocksdb") == []


@needs_a_compiler
@pytest.mark.untraced
def test_without_a_sync_some_epochs_are_lost_in_rocksdb(tmp_path: Path) -> None:
    """So the test above can fail, too."""
    assert len(wrong_among(tmp_path, 40, "rocksdb", "unsynced")) > 10


def disk(*entries: Entry) -> Disk:
    found = Disk()
    for entry in entries:
        found.do(entry)
    return found


MADE = (Entry("c", "a", 0, b""), Entry("w", "a", 0, b"one"), Entry("s", "a", 0, b""))
SYNCED = Entry("s", "", 0, b"")


def afterwards(disk: Disk) -> Iterator[dict[str, bytes]]:
    """What it may have when the power is back."""
    return (disk.after_loss(Random(seed), 0.5) for seed in range(20))


def test_a_disk_has_what_was_synced() -> None:
    """Both the file and its name."""
    assert list(afterwards(disk(*MADE, SYNCED))) == [{"a": b"one"}] * 20


def test_a_disk_may_have_what_was_not_synced() -> None:
    """All of it or a part, also of the names."""
    found = list(afterwards(disk(*MADE, Entry("w", "a", 3, b"two"), SYNCED, Entry("r", "a", 0, b"/b"))))
    assert {(name, content) for each in found for name, content in each.items()} == {
        (name, content) for name in "ab" for content in (b"one", b"onetwo")
    }


def test_a_disk_tears_writes_at_sectors() -> None:
    """Of a long one it may have any of its parts."""
    parts = {
        each["a"] for each in afterwards(disk(*MADE, SYNCED, Entry("w", "a", 0, b"x" * 512 + b"y" * 512)))
    }
    assert parts == {b"one", b"x" * 512, b"one" + bytes(509) + b"y" * 512, b"x" * 512 + b"y" * 512}
