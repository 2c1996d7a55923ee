"""The site: its pages name what is there, and leave nothing public out."""

from __future__ import annotations

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

from stormlet.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
DOCUMENTED = re.findall(
    r"^\.\. auto(?:class|function|exception):: (\w+)$",
    "\n".join(text for name, text in PAGES.items() if name.startswith("reference/")),
    re.MULTILINE,
)


@pytest.mark.parametrize("package", ["stormlet", "stormlet.testing", "stormlet.spark"])
def test_every_public_name_is_in_the_reference(package: str) -> None:
    """Once: a new name gets its place."""
    counts = {name: DOCUMENTED.count(name) for name in import_module(package).__all__}
    assert {name: count for name, count in counts.items() if count != 1} == {}


PUBLIC = ("", ".testing", ".spark", ".exports.prometheus", ".exports.opentelemetry")
"""The packages whose names are for users."""


def test_the_reference_has_no_other_names() -> None:
    """What is private stays out of it."""
    public = {name for each in PUBLIC for name in import_module(f"stormlet{each}").__all__}
    assert set(DOCUMENTED) <= public


@pytest.mark.parametrize("page", ["architecture.md", "law.md", "../CONTRIBUTING.md"])
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    """Also after it was moved."""
    named = set(
        re.findall(r"`((?:stormlet|tests|docs|examples|typings)/[\w/.]*)`", (DOCS / page).read_text("utf-8"))
    )
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_command_is_on_the_page() -> None:
    """With all commands that the program has."""
    shown = re.findall(r"^\| `stormlet ([\w-]+)", PAGES["reference/command-line.md"], re.MULTILINE)
    assert sorted(shown) == sorted(COMMANDS)


def test_no_reader_sees_which_tests_hold_a_promise() -> None:
    """The site is built without the comments that name them."""
    leave_out_tests = runpy.run_path(str(DOCS / "conf.py"))["leave_out_tests"]
    source = [PAGES["testing.md"]]
    leave_out_tests(None, "testing", source)
    assert "tested by" in PAGES["testing.md"]
    assert "test_a_feeder" not in source[0]
    assert "the feeder gets the final outcome.\n- `ScriptedBolt`" in source[0]
