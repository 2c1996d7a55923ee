"""The flights example, on all the flights."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stormlet.errors import TopologyCrashed
from stormlet.loading import load_topology
from tests.examples.runs import RunExample

ALL = """\
by carrier                    flights  arrived  mean delay  worst
Frontier Airlines Inc.            685      681        21.9    834
AirTran Airways Corporation     3,260    3,175        20.1    572
ExpressJet Airlines Inc.       54,173   51,108        15.8    577
Mesa Airlines Inc.                601      544        15.6    381
Envoy Air                      26,397   25,037        10.8  1,127
Southwest Airlines Co.         12,275   12,044         9.6    453
JetBlue Airways                54,635   54,049         9.5    497
Endeavor Air Inc.              18,460   17,294         7.4    744
United Air Lines Inc.          58,665   57,782         3.6    455
US Airways Inc.                20,536   19,831         2.1    492

by route                      flights  arrived  mean delay  worst
EWR-TYS                           323      313        41.2    281
EWR-TUL                           315      294        33.7    262
EWR-OKC                           346      315        30.6    262
EWR-RIC                         1,667    1,615        25.8    463
EWR-MKE                         1,094    1,058        24.0    441
EWR-DSM                           411      390        23.5    322
EWR-MSN                           354      345        23.2    337
EWR-PWM                           770      730        23.0    310
JFK-CMH                           742      705        22.9  1,127
EWR-DCA                         1,719    1,567        21.3    343

336,776 flights; computed directly, the tables are the same"""


@pytest.mark.untraced
def test_all_flights(run_example: RunExample) -> None:
    """The tables are those that pandas finds in the same data, every flight is acked, and the exit code is 0."""
    outcome = run_example("flights.py")
    assert outcome.lines == ALL.splitlines()
    assert outcome.acked("flights") == ("336,776", "336,776", "0")
    assert outcome.code == 0


def test_some_flights(run_example: RunExample) -> None:
    """With a limit it reads no more than so many flights."""
    outcome = run_example("flights.py", "--arg", "limit=1000")
    assert outcome.lines[-1] == "1,000 flights; computed directly, the tables are the same"
    assert outcome.code == 0


@pytest.mark.simulated_time
async def test_a_wrong_result_is_not_printed(
    examples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where topology and direct computation differ, the topology crashes instead of printing its tables."""
    topology = load_topology(str(examples / "flights.py"), {"limit": "100"})
    monkeypatch.setattr(sys.modules["flights"], "compute", lambda count: {})
    with pytest.raises(TopologyCrashed, match="ArithmeticError"):
        async with topology.run() as running:
            await running.finished()
    assert capsys.readouterr().out == ""
