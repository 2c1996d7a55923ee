"""The configuration reference is generated from the code."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

import pytest

from stormlet.model.configuration import OPTIONS, read_options
from stormlet.model.storm_names import NAMES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page() -> str:
    """The page as it would be written now."""
    text: str = runpy.run_path(str(DOCS / "build.py"))["page"]()
    return text


def test_the_page_is_what_the_code_says(page: str) -> None:
    """``python docs/build.py`` was run after the last change of an option."""
    assert (DOCS / "configuration.md").read_text("utf-8") == page


def test_every_name_is_on_the_page(page: str) -> None:
    """Each option and each name of Storm's that is known has its place, with what it means."""
    missing = [name for name in (*OPTIONS, *NAMES) if f"`{name}" not in page]
    assert missing == []
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert all(len(row.split("|")[-2].strip()) > 5 for row in rows)


def test_the_file_on_the_page_is_valid(page: str) -> None:
    """The TOML that it shows can be used."""
    content = tomllib.loads(page.split("```toml\n")[1].split("```")[0])
    assert read_options(content, "").values == {"message_timeout": 10, "ackers": 2, "max_spout_pending": 100}
