"""How a run ended."""

from __future__ import annotations

import json
import signal

import pytest

from stormlet.cli.running.outcome import Outcome, Replayed, Result, as_json
from stormlet.errors import StormletError
from stormlet.report.statistics import ComponentStatistics, Progress, Statistics

DONE = Statistics({"lines": ComponentStatistics(acked=3)})
GIVEN_UP = Statistics({"lines": ComponentStatistics(dead_letters=1, progress=Progress(7, None, "rows read"))})
LEFT_OVER = Statistics({"lines": ComponentStatistics(left_over=1)})
INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (Result("t", Outcome.FINISHED, statistics=DONE), 0),
        (Result("t", Outcome.FINISHED, statistics=GIVEN_UP), 1),
        (Result("t", Outcome.STOPPED, statistics=DONE), 0),
        (Result("t", Outcome.STOPPED, statistics=LEFT_OVER), 1),
        (Result("t", Outcome.STOPPED, signal=INT, statistics=DONE), 130),
        (Result("t", Outcome.STOPPED, signal=TERM, statistics=GIVEN_UP), 143),
        (Result("t", Outcome.CANCELLED, signal=INT, statistics=LEFT_OVER), 130),
        (Result("t", Outcome.CANCELLED, statistics=LEFT_OVER), 1),
        (Result("t", Outcome.CANCELLED, statistics=DONE), 1),
        (Result("t", Outcome.CRASHED, signal=INT), 1),
        (Result("t", Outcome.NOT_STARTED), 1),
        (Result(None, Outcome.INVALID), 2),
        (Result("t", Outcome.FINISHED, statistics=DONE, replayed=Replayed(3, 0, 0)), 0),
        (Result("t", Outcome.FINISHED, statistics=DONE, replayed=Replayed(3, 1, 0)), 1),
        (Result("t", Outcome.FINISHED, statistics=DONE, replayed=Replayed(3, 0, 1)), 1),
    ],
)
def test_the_exit_code_says_how_it_ended(result: Result, code: int) -> None:
    """0 done, 1 crashed or something undone, 2 invalid, 128 + n a signal, which counts for more than what it left."""
    assert result.exit_code == code


def test_scripts_get_one_line_with_everything() -> None:
    """Every count of every component, and what went wrong."""
    error = StormletError("\udc80 broke")
    text = as_json(Result("t", Outcome.CRASHED, 1.23456, INT, GIVEN_UP, error))
    assert "\n" not in text
    record = json.loads(text)
    components = record.pop("components")
    assert record == {
        "topology": "t",
        "outcome": "crashed",
        "exit_code": 1,
        "signal": "SIGINT",
        "seconds": 1.235,
        "dead_letters": 1,
        "left_over": 0,
        "error": "? broke",
        "replayed": None,
        "epoch": None,
    }
    assert components["lines"]["dead_letters"] == 1
    assert components["lines"]["execute_latency"] is None
    assert "tasks" not in components["lines"]
    assert components["lines"]["progress"] == {"done": 7, "known": None, "unit": "rows read"}
