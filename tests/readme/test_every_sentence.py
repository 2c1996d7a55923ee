"""Prose that is promises throughout: each of its sentences is in the docstring of the test that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readme.prose import Prose

TESTS = Path(__file__).parent
ROOT = TESTS.parents[1]
HEADING = "## What happens when\n"


def page(name: str, tests: str) -> Prose:
    return Prose((ROOT / "docs" / name).read_text("utf-8"), TESTS / tests)


def what_happens_when() -> Prose:
    section = (ROOT / "README.md").read_text("utf-8").split(HEADING, 1)[1].split("\n## ", 1)[0]
    return Prose(HEADING + section, TESTS / "what_happens_when", prefix="test_when_")


PROSE = [
    what_happens_when(),
    page("explaining.md", "explaining_page"),
    page("testing.md", "testing_page"),
]
SECTIONS = [(prose, heading) for prose in PROSE for heading in prose.sections()]


@pytest.mark.parametrize("prose", PROSE, ids=lambda prose: prose.folder.name)
def test_every_section_has_its_module(prose: Prose) -> None:
    """Whoever adds a section adds its tests."""
    assert len(prose.sections()) > 4
    assert [heading for heading in prose.sections() if not prose.module_of(heading).exists()] == []


@pytest.mark.parametrize(
    ("prose", "heading"), SECTIONS, ids=[f"{prose.folder.name}-{heading}" for prose, heading in SECTIONS]
)
def test_the_section_and_its_tests_say_the_same(prose: Prose, heading: str) -> None:
    """In the same words and the same order."""
    assert prose.promises(heading).split(" ") == prose.sections()[heading].split(" ")
