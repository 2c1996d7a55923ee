"""Processes that end at any moment, at a real Postgres."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect.kills import ask_readers_to_end, kill_readers, kill_writers
from tests.connect.postgres.kit import Place

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]


async def test_killed_processes_lose_nothing(place: Place, tmp_path: Path) -> None:
    """What was pending comes again when its lease is over."""
    await kill_readers(place, tmp_path, "queue")


async def test_a_process_that_is_asked_to_end_repeats_nothing(place: Place, tmp_path: Path) -> None:
    """It finishes what is under way, and gives back the rest."""
    await ask_readers_to_end(place, tmp_path)


async def test_what_a_killed_process_writes_is_there_once(place: Place, tmp_path: Path) -> None:
    """By the key of the rows."""
    await kill_writers(place, tmp_path, "queue to table")
