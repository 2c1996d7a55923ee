"""The hot modules run compiled or interpreted, as they were built and as the environment says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stormlet import Bolt, Collector, Topology, Tuple, is_compiled
from stormlet.acceleration import VARIABLE
from tests.helpers import run_to_end

ROOT = Path(__file__).parents[1]
DECLARED = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "stormlet").rglob("*.pxd")
)
FILES = "import sys, stormlet.cli; print(*(sys.modules[name].__file__ for name in sys.argv[1:]))"


def run_with(setting: str, code: str = FILES) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *DECLARED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, VARIABLE: setting},
    )


def test_every_declaration_belongs_to_a_module() -> None:
    """A file of C types without its module would never be used, and nobody would know."""
    assert DECLARED
    assert all((ROOT / f"{name.replace('.', '/')}.py").exists() for name in DECLARED)


def test_0_runs_what_can_be_read() -> None:
    """The interpreted files run, whether there are compiled ones or not."""
    shown = run_with("0").stdout.split()
    assert [Path(file).suffix for file in shown] == [".py"] * len(DECLARED)


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled here")
def test_1_runs_what_is_compiled() -> None:
    """All of it, not a part."""
    suffixes = [Path(file).suffix for file in run_with("1").stdout.split()]
    assert len(suffixes) == len(DECLARED)
    assert ".py" not in suffixes


@pytest.mark.skipif(is_compiled(), reason="everything is compiled here")
def test_1_insists() -> None:
    """An import that would silently run slow files fails and says what to do."""
    failed = run_with("1")
    assert failed.returncode == 1
    assert "STORMLET_COMPILED=1, but this installation is not compiled; install it anew" in failed.stderr


def test_anything_else_is_refused() -> None:
    """A word that is no setting is not taken for one."""
    failed = run_with("yes")
    assert "STORMLET_COMPILED='yes' is neither 0 (interpreted) nor 1 (compiled)" in failed.stderr


@pytest.mark.simulated_time
@pytest.mark.parametrize("verb", ["ack", "fail"])
async def test_none_is_no_tuple(verb: str) -> None:
    """Settling what is not there raises in the bolt, compiled or not, and harms nothing else."""
    raised: list[str] = []

    class Careless(Bolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            try:
                getattr(out, verb)(None)
            except AttributeError as error:
                raised.append(str(error))
            out.ack(tup)

    topology = Topology("careless")
    topology.bolt("careless", Careless, topology.spout("numbers", range(2)).shuffle())
    running = await run_to_end(topology)
    assert len(raised) == 2
    assert running.statistics().components["numbers"].acked == 2
