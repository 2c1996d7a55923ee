"""The files that tests of the command line run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent


def write(text: str) -> None:
    """Write ``flow.py`` in the current directory."""
    Path("flow.py").write_text("from stormlet import Topology\n" + dedent(text), "utf-8")
