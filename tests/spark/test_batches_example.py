"""The example of whole record batches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from stormlet import To
from stormlet.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "batches_spark.py"


def test_it_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every reading is there in degrees Celsius, but for those of broken sensors, of which it tells."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = main(["run", str(EXAMPLE), "--arg", f"directory={tmp_path}", "--arg", "rows=20000"])
    sys.modules.pop("batches_spark")
    place = tmp_path / "celsius"
    assert sorted(capsys.readouterr().out.splitlines()) == [
        f"19,980 readings in {place}",
        "20 of broken sensors",
    ]
    expected = {(n % 100, n // 100, (50 + n % 40 - 32) / 1.8) for n in range(20_000) if n % 1000 != 7}
    assert set(map(tuple, spark.read.parquet(str(place)).collect())) == expected
    assert code == 0


def test_a_batch_becomes_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which one has what cannot be, if there is any."""
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    from batches_spark import converted  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

    batch = pa.RecordBatch.from_pydict({"station": [1, 2], "hour": [3, 3], "fahrenheit": [50, -999]})
    good, broken = converted(batch)
    assert good.to_pylist() == [{"station": 1, "hour": 3, "celsius": 10.0}]
    assert isinstance(broken, To)
    assert broken.stream == "broken"
    assert broken.value.column("station").to_pylist() == [2]
    assert len(list(converted(batch.slice(0, 1)))) == 1
    sys.modules.pop("batches_spark")
