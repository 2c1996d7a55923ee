"""The folder of what is not checked yet."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from stormlet.spark.engine.passage.staging import Staging


def test_it_is_removed_from_those_who_write_into_it(tmp_path: Path) -> None:
    """They make it anew for a moment, as tasks do that end after the job was cancelled."""
    staging = Staging(str(tmp_path))

    def write() -> None:
        for number in range(4):
            time.sleep(0.1)
            staging.path.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # it was removed between the two
                (staging.path / f"{number}").touch()

    writer = threading.Thread(target=write)
    writer.start()
    staging.remove_from_writers()
    writer.join()
    assert [*tmp_path.iterdir()] == []


def test_it_is_removed_where_the_machine_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes stands still, too, and writes on after it."""
    staging, stood = Staging(str(tmp_path)), list[None]()
    writes = iter([staging.path])

    def stand_still(seconds: float) -> None:
        if not stood:
            stood.append(time.sleep(0.6))
        else:
            for path in writes:
                path.mkdir()

    monkeypatch.setattr("stormlet.spark.engine.passage.staging.sleep", stand_still)
    staging.remove_from_writers()
    for path in writes:
        path.mkdir()
    assert [*tmp_path.iterdir()] == []


def test_it_goes_with_its_object(tmp_path: Path) -> None:
    """Whoever forgets it leaves nothing behind."""
    staging = Staging(str(tmp_path))
    (staging.path / "rows").mkdir()
    del staging
    assert [*tmp_path.iterdir()] == []
