"""The page about Spark: its program runs, and does what it says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stormlet.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text("utf-8")
PROGRAMS = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_program_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes so many rows, and so many are rejected, as the page says."""
    ((name, text),) = PROGRAMS
    (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = main(["run", str(tmp_path / name), "--arg", f"path={tmp_path / 'out'}"])
    sys.modules.pop(name.removesuffix(".py"))
    assert "writes 990 rows and reports ten dead letters" in PAGE
    assert spark.read.parquet(str(tmp_path / "out")).count() == 990
    assert "dead letters: 10" in capsys.readouterr().err.splitlines()
    assert code == 1
