"""Prose that is promises throughout: each of them names the tests that hold it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.readme.prose import ANCHOR, Prose

TESTS = Path(__file__).parent
ROOT = TESTS.parents[1]
HEADING = "## What happens when\n"


def page(name: str, tests: str) -> Prose:
    return Prose((ROOT / "docs" / name).read_text("utf-8"), TESTS / tests)


def what_happens_when() -> Prose:
    section = (ROOT / "README.md").read_text("utf-8").split(HEADING, 1)[1].split("\n## ", 1)[0]
    return Prose(section, TESTS / "what_happens_when")


def spark_engine() -> tuple[Prose, Prose]:
    """The page about topologies on Spark: what needs Spark is held beside the engine, the rest by tests here."""
    text = (ROOT / "docs" / "spark-engine.md").read_text("utf-8")
    opening, rest = text.split("## Run it\n", 1)
    runs, plan = rest.split("## The plan\n", 1)
    return Prose(runs, TESTS.parent / "spark" / "engine"), Prose(opening + plan, TESTS / "spark_engine_page")


def state() -> Prose:
    """The table of failures on the page about state, whose tests stand with their like."""
    text = (ROOT / "docs" / "state.md").read_text("utf-8")
    section = text.split("## What happens when\n", 1)[1].split("\n## ", 1)[0]
    return Prose(section, TESTS.parent)


ON_SPARK, PLAN_FOR_SPARK = spark_engine()
STATE = state()
STATE_TESTS = [
    name
    for folder in ("epochs", "examples", "law", "state")
    for name in Prose("", TESTS.parent / folder).tests()
]
PROSE = [
    what_happens_when(),
    page("explaining.md", "explaining_page"),
    page("testing.md", "testing_page"),
    PLAN_FOR_SPARK,
]
each_prose = pytest.mark.parametrize("prose", PROSE, ids=lambda prose: prose.folder.name)


@each_prose
def test_every_promise_names_its_tests(prose: Prose) -> None:
    """Whoever adds a promise adds its test."""
    assert [promise.text for promise in prose.promises() if not promise.tests] == []


@each_prose
def test_every_name_is_that_of_a_test(prose: Prose) -> None:
    """Also after the test was renamed."""
    named = {name for promise in prose.promises() for name in promise.tests}
    assert named - set(prose.tests()) == set()


@each_prose
def test_every_test_holds_a_promise(prose: Prose) -> None:
    """A promise that is deleted or moved elsewhere takes its tests along."""
    named = {name for promise in prose.promises() for name in promise.tests}
    assert set(prose.tests()) - named == set()


@each_prose
def test_every_name_means_one_test(prose: Prose) -> None:
    """No two tests of a folder have the same."""
    assert [name for name, count in Counter(prose.tests()).items() if count > 1] == []


def test_no_page_names_tests_unseen() -> None:
    """A comment in another section or page, or in a place where it is no comment, would hold nothing."""
    pages = "\n".join(
        path.read_text("utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    )
    named = [
        name for prose in (*PROSE, ON_SPARK, STATE) for promise in prose.promises() for name in promise.tests
    ]
    assert pages.count("tested by:") == len(ANCHOR.findall(pages))
    assert sum(len(names.split(",")) for names in ANCHOR.findall(pages)) == len(named)


def test_a_promise_without_a_test_is_seen() -> None:
    """Each kind of block is a promise of its own; what stands between them is none."""
    text = """# A heading

A paragraph
of two lines.

- An item.
  <!-- tested by: test_one,
    test_two -->
- Another item.

```python
"code"
```

| a | head |
| --- | --- |
| a | row <!-- tested by: test_three --> |
| another | row |
"""
    found = [(promise.text.splitlines()[0], promise.tests) for promise in Prose(text, TESTS).promises()]
    assert found == [
        ("A paragraph", []),
        ("- An item.", ["test_one", "test_two"]),
        ("- Another item.", []),
        ("| a | row <!-- tested by: test_three --> |", ["test_three"]),
        ("| another | row |", []),
    ]


def test_what_a_run_on_spark_promises_is_held_beside_the_engine() -> None:
    """Each of these promises names its tests, and they exist; they need Spark, as others there do."""
    promises = ON_SPARK.promises()
    assert [promise.text for promise in promises if not promise.tests] == []
    assert {name for promise in promises for name in promise.tests} - set(ON_SPARK.tests()) == set()


def test_what_happens_to_state_is_held_by_tests() -> None:
    """Each row of that table names its tests, and they exist; others stand beside them."""
    promises = STATE.promises()
    assert len(promises) >= 15
    assert [promise.text for promise in promises if not promise.tests] == []
    assert {name for promise in promises for name in promise.tests} - set(STATE_TESTS) == set()
