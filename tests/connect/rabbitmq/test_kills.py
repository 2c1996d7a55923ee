"""Processes that end at any moment, at a real RabbitMQ."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect.kills import ask_readers_to_end, kill_readers, kill_writers
from tests.connect.rabbitmq.kit import Rabbit

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_a_process_that_is_killed_loses_nothing(rabbit: Rabbit, kind: str, tmp_path: Path) -> None:
    """At random moments, several times. What comes twice was pending, or done and not yet settled."""
    rabbit.kind = kind
    await kill_readers(rabbit, tmp_path, kind)


async def test_a_process_that_is_asked_to_end_repeats_nothing(rabbit: Rabbit, tmp_path: Path) -> None:
    """It finishes what is under way, and gives back the rest."""
    await ask_readers_to_end(rabbit, tmp_path)


async def test_what_a_killed_process_publishes_is_all_there(rabbit: Rabbit, tmp_path: Path) -> None:
    """From queue to queue at least once: an input is acked when its output is confirmed."""
    await kill_writers(rabbit, tmp_path, "queue to queue")
