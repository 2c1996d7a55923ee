"""Traces of bolts whose code runs in threads, of which there are none on simulated time."""

from __future__ import annotations

import pytest

from tests.exports.exported import Exported, five_in_two_bolts


@pytest.mark.asyncio
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_threads_are_traced(concurrency: int) -> None:
    """Each input has a span, and what comes of it has one below."""
    await five_in_two_bolts(Exported(), {"executor": "thread", "concurrency": concurrency})
