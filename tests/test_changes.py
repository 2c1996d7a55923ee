"""The fragments that the next section of the changelog is made of."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
KINDS = "|".join(kind["directory"] for kind in SETTINGS["type"])


def test_every_fragment_has_a_name_that_is_read() -> None:
    """towncrier passes over any other one, and the change would not be in the changelog."""
    names = [path.name for path in (ROOT / SETTINGS["directory"]).iterdir() if path.name != "README.md"]
    assert [name for name in names if not re.fullmatch(rf"(\d+|\+[\w-]+)\.({KINDS})\.md", name)] == []


def test_every_kind_is_explained() -> None:
    """The table of changes/README.md has each kind, and no other."""
    table = (ROOT / SETTINGS["directory"] / "README.md").read_text("utf-8")
    assert re.findall(r"^\| `123\.(\w+)\.md`", table, re.MULTILINE) == KINDS.split("|")


def test_the_changelog_has_the_line_below_which_a_section_is_written() -> None:
    """Without it, towncrier would write above the title."""
    assert (ROOT / SETTINGS["filename"]).read_text("utf-8").count(SETTINGS["start_string"]) == 1
