"""Whatever a topology file holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example
from hypothesis import strategies as st

import stormlet
from tests.fuzz.cli_runs import DONE, run_cli
from tests.fuzz.conftest import FLOW
from tests.fuzz.fuzzed import fuzzed
from tests.fuzz.inputs import damaged

OURS = str(Path(stormlet.__file__).parent)

RAISING = [
    "raise SystemExit(0)",
    "raise SystemExit('x')",
    "import sys; sys.exit(3)",
    "raise BaseException",
    "raise GeneratorExit",
    "raise RecursionError",
    "def f(): f()\nf()",
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "class E(Exception):\n    def __repr__(self): raise ValueError\nraise E(object())",
    "import nothing_like_that",
    "from . import x",
    "import flow_broken",
    "topology = 1",
    "topology: 'x'",
    "def build(a, /): ...",
    "def build(*, a: 'nowhere') -> 'Topology': ...",
    "def build() -> 'Topology': return build",
    "def build() -> 'Topology': raise KeyError",
    "async def build() -> 'Topology': ...",
    "lambda: (" + "(" * 300,
    "x = " + "-" * 5000 + "1",
    "x = 1" + "+1" * 20_000,
    "__name__ = None",
    "__file__ = 1",
    "def __getattr__(name): raise OSError(name)",
    "globals().clear()",
    "from stormlet import *; topology = Topology('x')",
    "from stormlet import Topology; topology = Topology('x' * 10_000); topology.spout('\\ud800', range(3))",
]
contents = (
    damaged(FLOW.encode())
    | st.binary(max_size=40)
    | st.sampled_from(
        [b"\x00", b"\xff", b"# coding: nothing\n", b"# coding: utf-16\n", b"\xef\xbb\xbf" + FLOW.encode()]
    )
)


def check(there: Path, content: bytes) -> None:
    (there / "flow_broken.py").write_bytes(content)
    ended = run_cli(["check", "flow_broken.py"])
    if ended.code != DONE:
        last = ended.err.rstrip().rpartition("\nstormlet: ")[2]
        assert "flow_broken.py" in last or "topology" in last
        assert f'File "{OURS}' not in ended.err


@fuzzed(contents)
@example(content='name = "café"'.encode("latin-1"))
def test_any_bytes(there: Path, content: bytes) -> None:
    """It has a topology, or the message names the file; a traceback begins in the user's own code."""
    check(there, content)


@pytest.mark.parametrize("text", RAISING, ids=lambda text: text[:30])
def test_any_behaviour(there: Path, text: str) -> None:
    """Whatever it does when it is imported."""
    check(there, text.encode())
