"""``state diff``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stormlet.cli import main
from tests.cli.state.kept import FILE, keep

OTHER = Path("other.state")


def test_two_epochs_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """What was added, changed and removed in between."""
    keep({"a": 1, "b": 1, "same": 3}, {"a": 2}, {"b": None, "c\n": 7})
    assert main(["state", "diff", str(FILE), "--epoch", "1", "--epoch", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        '~ count.total "a"  1 -> 2',
        '+ count.total "c\\n"  7',
        '- count.total "b"  1',
        "1 added, 1 removed, 1 changed from epoch 1 of counts.state to epoch 3 of counts.state",
    ]


def test_one_epoch_is_compared_with_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    """And the last with itself has no differences."""
    keep({"a": 1}, {"a": 2})
    assert main(["state", "diff", str(FILE), "--epoch", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "change": "changed", "state": "count.total", "key": "a", "before": 1, "after": 2,
    }  # fmt: skip
    assert main(["state", "diff", str(FILE), "--epoch", "2"]) == 0
    assert capsys.readouterr().out == (
        "no differences from epoch 2 of counts.state to epoch 2 of counts.state\n"
    )


def test_two_files_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """With one more than a table has."""
    keep({})
    keep({f"k{number}": number for number in range(51)}, path=OTHER)
    assert main(["state", "diff", str(FILE), str(OTHER)]) == 0
    *listed, last = capsys.readouterr().out.splitlines()
    assert len(listed) == 50
    assert last == ("51 added from epoch 1 of counts.state to epoch 1 of other.state; these are the first 50")


@pytest.mark.parametrize("arguments", [[], ["--epoch", "1", "--epoch", "1", "--epoch", "1"]])
def test_two_sides_are_needed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Neither one nor three."""
    keep({"a": 1})
    assert main(["state", "diff", str(FILE), *arguments]) == 2
    assert "name one or two epochs by --epoch, or another file" in capsys.readouterr().err


def test_nan_is_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    """Although it is not equal to itself."""
    keep({"a": float("nan")}, {"b": 1})
    assert main(["state", "diff", str(FILE), "--epoch", "1"]) == 0
    assert capsys.readouterr().out.startswith("+ count.total")
