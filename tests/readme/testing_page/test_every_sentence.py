"""The page "Testing your topology": each of its sentences is in the docstring of the test that shows it."""

from __future__ import annotations

import pytest

from tests.readme.testing_page.page import module_of, promises, sections

SECTIONS = sections()


def test_every_section_has_its_module() -> None:
    """Whoever adds a section adds its tests."""
    assert [heading for heading in SECTIONS if not module_of(heading).exists()] == []


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_section_and_its_tests_say_the_same(heading: str) -> None:
    """In the same words and the same order."""
    assert promises(heading).split(" ") == SECTIONS[heading].split(" ")
