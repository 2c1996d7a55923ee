"""The page of states is generated from the tables of the code."""

from __future__ import annotations

import runpy
from pathlib import Path

from stormlet.core.life import OUTBOX, TASK

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_states_is_what_the_tables_say() -> None:
    """``python docs/states.py`` was run after the last change of a table."""
    page: str = runpy.run_path(str(DOCS / "states.py"))["page"]()
    assert (DOCS / "states.md").read_text("utf-8") == page
    assert page.count("| **") == len(TASK) + len(OUTBOX)
