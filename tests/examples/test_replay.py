"""The example of failures and replays."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from stormlet import DeadLetter
from stormlet.loading import load_topology
from tests.examples.runs import RunExample

ATTEMPT = re.compile(r" *(\d+\.\d) s  (\w+), attempt (\d)")


def test_what_fails_is_replayed_or_given_up(run_example: RunExample) -> None:
    """Each order gets its attempts, two are paid, two become dead letters, and the exit code is 1."""
    outcome = run_example("replay.py", "--set", "replay_delay=0")
    attempts = [match.group(2, 3) for match in map(ATTEMPT.match, outcome.lines) if match]
    counts = {"lamp": 1, "table": 3, "voucher": 1, "carpet": 4}
    assert sorted(attempts) == sorted(
        (item, str(attempt)) for item, count in counts.items() for attempt in range(1, count + 1)
    )
    assert [line for line in outcome.lines if not ATTEMPT.match(line)] == ["paid: lamp", "paid: table"]
    assert "dead letters: 2\n" in outcome.summary
    assert outcome.code == 1


@pytest.mark.simulated_time
async def test_the_pauses_double(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The replays come after 0.2, 0.4 and 0.8 seconds, each stretched by a quarter at most (law S6)."""
    letters: list[DeadLetter] = []
    topology = load_topology(str(examples / "replay.py"), {})
    async with topology.run(seed=1, dead_letters=letters.append) as running:
        await running.finished()
    found = map(ATTEMPT.match, capsys.readouterr().out.splitlines())
    times = [float(match[1]) for match in found if match and match[2] == "carpet"]
    pauses = [after - before for before, after in pairwise(times)]
    assert len(pauses) == 3
    for pause, shortest in zip(pauses, (0.2, 0.4, 0.8), strict=True):
        assert shortest - 0.1 <= pause <= shortest * 1.25 + 0.1  # printed with one decimal
    assert [(letter.attempts, str(letter.failure.exception)) for letter in letters] == [
        (1, "nothing to pay"),
        (4, "the bank does not answer"),
    ]
