"""The files that tests of the command line run."""

from __future__ import annotations

from importlib.util import cache_from_source
from pathlib import Path
from textwrap import dedent


def write(text: str) -> None:
    """Write ``flow.py`` in the current directory."""
    # Bytecode of another text of this size, written in the same second, would be taken for its own.
    Path(cache_from_source("flow.py")).unlink(missing_ok=True)
    Path("flow.py").write_text("from stormlet import Topology\n" + dedent(text), "utf-8")
