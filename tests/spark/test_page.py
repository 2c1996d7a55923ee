"""The page about Spark: its program runs, and does what it says."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stormlet.cli import main
from stormlet.loading import load_topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text("utf-8")
PROGRAMS = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def test_the_program_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes so many rows, and so many are rejected, as the page says."""
    (tmp_path / "totals.py").write_text(PROGRAMS["totals.py"], "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = main(["run", str(tmp_path / "totals.py"), "--arg", f"path={tmp_path / 'out'}"])
    sys.modules.pop("totals")
    assert "writes 990 rows and reports ten dead letters" in PAGE
    assert spark.read.parquet(str(tmp_path / "out")).count() == 990
    assert "dead letters: 10" in capsys.readouterr().err.splitlines()
    assert code == 1


@pytest.mark.asyncio
async def test_the_stream_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes the lines that are put into its folder, and goes on with those of the next run."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "arrivals.py").write_text(PROGRAMS["arrivals.py"], "utf-8")
    (tmp_path / "orders").mkdir()
    topology = load_topology(str(tmp_path / "arrivals.py"), {"folder": str(tmp_path)})
    for run in range(2):
        order = f'{{"id": {run}, "cents": 250}}\n{{"id": {run}}}\n'
        (tmp_path / "orders" / f"{run}.json").write_text(order, "utf-8")
        async with topology.run(dead_letters=tmp_path / "rejected.jsonl"):
            while not (tmp_path / "checkpoint" / "commits" / f"{run}").exists():  # noqa: ASYNC110 Spark tells nobody
                await asyncio.sleep(0.01)
    sys.modules.pop("arrivals")
    assert sorted(spark.read.parquet(str(tmp_path / "invoices")).collect()) == [(0, 2.5), (1, 2.5)]
    assert len((tmp_path / "rejected.jsonl").read_text().splitlines()) == 2


def test_the_bookings_are_written_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two entries for each order, nothing of one that is rejected, and another run adds nothing."""
    spark.createDataFrame([(1, 500), (2, -1), (3, 700)], "id bigint, cents bigint").write.parquet(
        str(tmp_path / "orders")
    )
    (tmp_path / "exact.py").write_text(PROGRAMS["exact.py"], "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    command = ["run", str(tmp_path / "exact.py"), "--arg", f"folder={tmp_path}"]
    codes = [main([*command, "--dead-letters", str(tmp_path / "rejected.jsonl")]) for _ in range(2)]
    sys.modules.pop("exact")
    capsys.readouterr()
    assert codes == [1, 0]
    entries = spark.read.parquet(str(tmp_path / "entries")).select("order", "account", "cents")
    assert sorted(map(tuple, entries.collect())) == [
        (1, "customer", -500),
        (1, "sales", 500),
        (3, "customer", -700),
        (3, "sales", 700),
    ]
    assert len((tmp_path / "rejected.jsonl").read_text().splitlines()) == 1
