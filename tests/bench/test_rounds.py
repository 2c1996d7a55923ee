"""Workloads run in processes of their own, take turns, and fail loudly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stormlet.bench import rounds
from stormlet.bench.rounds import Measured, WorkloadFailed, measure
from stormlet.bench.word_count import WORKLOADS
from stormlet.cli import main

FAKE = """\
import pathlib, sys
name, size, loop = sys.argv[1:]
log = pathlib.Path({log!r})
log.write_text(log.read_text() + name + " ")
if name == "unacked":
    sys.exit("it has lost a word")
print('noise\\n{{"figures":{{"tuples_per_s":' + size + '}},"collector":{{"count":0,"total_ms":0,"longest_ms":0}}}}')
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Has the names of the workloads that were run, none of which does anything but to report its size."""
    log = tmp_path / "log"
    log.write_text("")
    fake = tmp_path / "fake"
    fake.write_text(f"#!{sys.executable}\n{FAKE.format(log=str(log))}")
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" "{fake}" "$@"\n')
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    return log


def test_the_median_is_what_is_quoted() -> None:
    """One outlier does not move the figure."""
    assert Measured([3.0, 100.0, 1.0]).median == 3.0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_workloads_take_turns(log: Path) -> None:
    """Every round has all of them, every second one backwards; what they print besides is not read."""
    seen: list[tuple[int, str]] = []
    results = measure(
        [WORKLOADS["loops"], WORKLOADS["acked"]],
        3,
        0.01,
        progress=lambda number, name: seen.append((number, name)),
    )
    assert log.read_text().split() == ["loops", "acked", "acked", "loops", "loops", "acked"]
    assert seen[:3] == [(1, "loops"), (1, "acked"), (2, "acked")]
    assert results["acked"].figures["tuples_per_s"].values == [1000.0] * 3


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_a_workload_that_fails_ends_it_all(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its words are shown, the exit code is 1, and nothing is on standard output."""
    assert main(["bench", "loops", "unacked", "latency"]) == 1
    output = capsys.readouterr()
    assert (log.read_text().split(), output.out) == (["loops", "unacked"], "")
    assert output.err == "stormlet: workload unacked failed:\nit has lost a word\n\n"


def test_a_workload_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which one."""
    monkeypatch.setattr(rounds, "LONGEST", 0.01)
    with pytest.raises(WorkloadFailed, match="workload loops did not end within 0 s"):
        measure([WORKLOADS["loops"]], 1)
