"""The page "Why is it stuck?": each of its sentences is in the docstring of the test that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readme.prose import Prose

ROOT = Path(__file__).parents[3]
PROSE = Prose((ROOT / "docs" / "explaining.md").read_text("utf-8"), Path(__file__).parent)
SECTIONS = PROSE.sections()


def test_every_section_has_its_module() -> None:
    """Whoever adds a section adds its tests."""
    assert len(SECTIONS) > 4
    assert [heading for heading in SECTIONS if not PROSE.module_of(heading).exists()] == []


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_section_and_its_tests_say_the_same(heading: str) -> None:
    """In the same words and the same order."""
    assert PROSE.promises(heading).split(" ") == SECTIONS[heading].split(" ")
