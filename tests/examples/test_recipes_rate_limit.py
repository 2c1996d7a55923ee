"""The recipe of a rate limit."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise

import pytest

from examples.recipes.rate_limit import RateLimit, limited
from tests.examples.runs import RunExample
from tests.helpers import now, run_to_end

CALL = re.compile(r" *(\d+\.\d\d) s  call (\d+)")


def calls(lines: list[str]) -> list[tuple[float, int]]:
    """When each call started, and its number."""
    found = map(CALL.fullmatch, lines)
    return [(float(match[1]), int(match[2])) for match in found if match]


def test_it_takes_the_time_it_must(run_example: RunExample) -> None:
    """The 100 calls of the example all happen, in a second, and nothing times out."""
    outcome = run_example("recipes/rate_limit.py")
    starts = calls(outcome.lines)
    assert sorted(number for _, number in starts) == list(range(100))
    assert 0.95 <= max(start for start, _ in starts) <= 20
    assert outcome.code == 0


@pytest.mark.simulated_time
async def test_calls_start_one_slot_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """Two tasks with twenty calls each under way share the slots: one call starts every 20 ms, to the end."""
    running = await run_to_end(limited(calls=1000, rate=50.0), seed=1)
    starts = sorted(start for start, _ in calls(capsys.readouterr().out.splitlines()))
    assert starts == [pytest.approx(number / 50, abs=0.006) for number in range(1000)]
    assert running.statistics().components["numbers"].failed == 0


@pytest.mark.simulated_time
async def test_time_without_calls_is_not_saved_up() -> None:
    """After a pause the calls do not catch up with a burst."""
    limit, starts = RateLimit(10.0), list[float]()

    async def call() -> None:
        await limit.slot()
        starts.append(now())

    await call()
    await asyncio.sleep(60)
    await asyncio.gather(*(call() for _ in range(20)))
    assert min(after - before for before, after in pairwise(starts)) >= 0.1 - 1e-9
