"""The command: its workloads, its report, and the names that it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stormlet.bench import state
from stormlet.bench.catalogue import chosen
from stormlet.bench.report import UNITS
from stormlet.bench.word_count import WORKLOADS
from stormlet.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "bench.md").read_text("utf-8")
SHORT = ["--rounds", "1", "--scale", "0.002"]


def test_every_workload_gives_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """Without names all but those of state run, and each checks its result by itself."""
    assert main(["bench", "--json", *SHORT]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert list(figures) == list(WORKLOADS)
    assert all(value > 0 for each in figures.values() for values in each.values() for value in values)
    assert {which for each in figures.values() for which in each} == UNITS.keys() - {"tuples_per_cpu_s"}


def test_a_quick_run_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """``--quick`` is one short round; a rate stands beside its share of the limit."""
    assert main(["bench", "acked", "loops", "--quick", "--loop", "uvloop"]) == 0
    headline, table = capsys.readouterr().out.split("\n\n")
    assert "uvloop" in headline
    assert headline.endswith("one round in which the workloads take turns.")
    head, limit, acked = table.splitlines()
    assert head.split("  ")[0] == "what"
    assert limit.startswith("nested loops")
    assert acked.startswith("word count, fully acked")
    assert "1/" in acked
    assert "1/" not in limit


def test_an_unknown_workload_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything runs, with the names that there are."""
    assert main(["bench", "loop"]) == 2
    said = capsys.readouterr().err
    assert (
        "there is no workload 'loop'; there are loops, acked, unacked, latency, and state for state-none"
        in said
    )


def test_state_is_measured_when_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Each beside the same without state."""
    assert main(["bench", "state", *SHORT]) == 0
    head, *rows = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert head.endswith("of the same without state")
    labels = [each.label for each in state.WORKLOADS.values() for _ in range(2)]
    assert [row.split("  ")[0] for row in rows] == labels
    assert [float(row.split("  ")[-1]) > 0 for row in rows if "without state" not in row] == [True] * 14


def test_what_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it is not named itself."""
    monkeypatch.setattr("stormlet.bench.workload.find_spec", lambda name: None)
    assert [each.name for each in chosen(["state"])] == [
        name for name in state.WORKLOADS if "rocks" not in name
    ]


def test_a_terminal_shows_the_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On one line, which is empty in the end."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["bench", "loops", "--rounds", "1", "--scale", "0.001"]) == 0
    assert capsys.readouterr().err == "\r\033[Kround 1: loops\r\033[K"


def test_the_page_says_which_workloads_the_command_has() -> None:
    """Those four, in one sentence."""
    names = [f"`{name}`" for name in WORKLOADS]
    assert f"{', '.join(names[:-1])} and {names[-1]}" in PAGE


def seconds_of(process: int) -> float:
    """The time that a process has had a processor for itself."""
    user = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11]
    return int(user) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the child in /proc")
def test_a_bench_that_is_ended_leaves_no_process_behind() -> None:
    """The workload that it has begun ends with it."""
    command = [sys.executable, "-m", "stormlet", "bench", "loops", "--scale", "1000"]
    bench = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    children = Path(f"/proc/{bench.pid}/task/{bench.pid}/children")
    while not (child := children.read_text()) or seconds_of(int(child)) < 0.2:  # so it has begun
        assert bench.poll() is None
        time.sleep(0.05)
    bench.terminate()
    assert bench.wait() == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.killpg(bench.pid, 0)
