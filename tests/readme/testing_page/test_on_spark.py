"""The page "Testing your topology": what is tested of a topology that Spark shall run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from stormlet.cli import main
from tests.spark.engine import batch_kills, campaign, executor_kills, kills

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text("utf-8")
COMMANDS = re.findall(r"`python -m tests\.spark\.engine\.(\w+) ([^`]*)`", PAGE)
FIT = """
from stormlet import Topology
topology = Topology("fit")
topology.bolt("end", print, topology.spout("s", [1]).shuffle())
"""


def test_a_check_for_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It passes for a list, and not for a spout that the host feeds."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, text, code in (("fit", FIT, 0), ("unfit", FIT.replace(", [1]", ""), 2)):
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
        assert main(["check", str(tmp_path / f"{name}.py"), "--engine", "spark"]) == code
    assert "spout 's' has no source" in capsys.readouterr().err


def test_campaigns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All are there, and take the options that the page gives them."""
    mains = {
        "campaign": campaign.main,
        "kills": kills.main,
        "batch_kills": batch_kills.main,
        "executor_kills": executor_kills.main,
    }
    assert [name for name, _ in COMMANDS] == [*mains]
    for name, options in COMMANDS:
        monkeypatch.setattr(sys, "argv", [name, *options.split(), "--help"])
        with pytest.raises(SystemExit) as ended:
            mains[name]()
        assert ended.value.code == 0
        assert all(each in capsys.readouterr().out for each in options.split() if each.startswith("--"))
