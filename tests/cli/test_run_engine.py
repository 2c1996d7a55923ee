"""``stormlet run --engine spark``: what is said before Spark starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from stormlet.cli import main
from stormlet.errors import SparkFailed
from tests.cli.flows import write

PRINTING = """
topology = Topology("printing")
topology.bolt("b", print, topology.spout("s", [1]).shuffle(), parallelism=2)
"""
NOTES = [
    (
        "note: parallelism=2 of bolt 'b' has no effect on Spark: it is fused into stage 0, and has a task in each "
        "partition there"
    ),
    (
        "note: bolt 'b' prints where its tasks run, which may be on other machines; let one task take its inputs by "
        "global_, and it prints here"
    ),
]


@pytest.fixture(autouse=True)
def _spark_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing starts, and no module is left that another test's file has made."""
    pytest.importorskip("pyspark")

    def fail(*_: object, **__: object) -> None:
        raise SparkFailed("it has not started")

    monkeypatch.setattr("stormlet.spark.run_on_spark", fail)
    monkeypatch.setattr("stormlet.spark.stream_on_spark", fail)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "flow", raising=False)


def said(capsys: pytest.CaptureFixture[str], *options: str) -> Sequence[str]:
    assert main(["run", "flow.py", "--engine", "spark", *options]) == 1
    return capsys.readouterr().err.splitlines()


def test_the_notes_of_check_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Once, and nothing of them is on standard output."""
    write(PRINTING)
    assert [each for each in said(capsys) if "note" in each] == NOTES


def test_those_of_the_settings_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Which may come from anywhere."""
    write(PRINTING)
    assert said(capsys, "--set", "idle_max=2")[0].startswith("note: idle_max=2 has no effect on Spark")


def test_a_quiet_run_says_nothing_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Only its error."""
    write(PRINTING)
    assert not any("note" in each for each in said(capsys, "--quiet"))


def test_in_process_there_is_nothing_to_note(capsys: pytest.CaptureFixture[str]) -> None:
    """All of it has an effect."""
    write(PRINTING)
    assert main(["run", "flow.py"]) == 0
    assert "note" not in capsys.readouterr().err
