"""The flights example on Spark, on the flights of January."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from stormlet import Reject
from stormlet.cli import main
from stormlet.errors import TopologyCrashed
from stormlet.loading import load_topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights_spark.py"

JANUARY = """\
group                         flights  arrived  mean delay  worst
ExpressJet Airlines Inc.        4,171    3,964        25.2    456
Endeavor Air Inc.               1,573    1,480        10.2    370
EWR-CLT                           381      371         9.6    243
EWR-ORD                           502      482         9.5  1,109
Envoy Air                       2,271    2,203         7.9  1,109
LGA-FLL                           352      349         7.8    368
LGA-MSP                           316      309         6.9    486
EWR-ATL                           362      349         6.6    220
EWR-MCO                           422      421         6.5    497
Southwest Airlines Co.            996      985         5.9    255
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the flights are written once for all tests."""
    return tmp_path_factory.mktemp("flights")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """The example is loaded anew by each test."""
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    monkeypatch.delitem(sys.modules, "flights_spark", raising=False)


@pytest.mark.untraced
def test_january(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table is what a loop over the CSV file gives, every flight is acked, and the exit code is 0."""
    code = main(["run", str(EXAMPLE), "--arg", f"directory={directory}", "--arg", "months=1"])
    output = capsys.readouterr()
    assert output.out == f"{JANUARY}202 rows in {directory / 'delays'}; Spark SQL's are the same\n"
    assert ["flights", "27,004", "27,004", "0"] in [line.split()[:4] for line in output.err.splitlines()]
    assert code == 0


@pytest.mark.untraced
@pytest.mark.simulated_time
async def test_a_wrong_result_is_not_printed(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the topology and Spark SQL differ, the topology crashes instead of printing its table."""
    topology = load_topology(str(EXAMPLE), {"directory": str(directory), "months": "1"})
    example = sys.modules["flights_spark"]
    monkeypatch.setattr(example, "AGGREGATION", example.AGGREGATION.replace("count(*)", "count(*) + 1"))
    with pytest.raises(
        TopologyCrashed, match=r"ArithmeticError\('404 rows differ from those of Spark SQL'\)"
    ):
        async with topology.run() as running:
            await running.finished()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"distance": 17}, "17 miles from EWR to ORD"), ({"air_time": 61}, "719 miles in 61 minutes")],
)
def test_flights_that_cannot_be(changes: dict[str, int], reason: str) -> None:
    """They are rejected; those of which less is known are not."""
    example = import_module("flights_spark")
    flight = example.Flight("United Air Lines Inc.", "EWR", "ORD", 719, 110, 5)
    assert example.checked(flight) is flight
    assert example.checked(msgspec.structs.replace(flight, air_time=None)).air_time is None
    with pytest.raises(Reject, match=f"^{reason}$"):
        example.checked(msgspec.structs.replace(flight, **changes))
