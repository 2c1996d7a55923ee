"""Processes that end at any moment, at a real NATS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect.kills import ask_readers_to_end, kill_readers, kill_writers
from tests.connect.nats.kit import Server

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]


async def test_killed_processes_lose_nothing(server: Server, tmp_path: Path) -> None:
    """What was pending comes again when its lease is over."""
    await kill_readers(server, tmp_path, "stream")


async def test_a_process_that_is_asked_to_end_repeats_nothing(server: Server, tmp_path: Path) -> None:
    """It finishes what is under way, and gives back the rest."""
    await ask_readers_to_end(server, tmp_path)


async def test_what_a_killed_process_publishes_is_there_once(server: Server, tmp_path: Path) -> None:
    """From stream to stream: with a message id, each output is kept once."""
    await kill_writers(server, tmp_path, "stream to stream")
