"""The law: its numbers, its tests, and the places that cite it."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import stormlet

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs"
PACKAGE = Path(stormlet.__file__).parent  # installed, where it is tested compiled
RULES = re.findall(r"^### ([LFSBCNXKR]\d+)$", (DOCS / "law.md").read_text("utf-8"), re.MULTILINE)
BUILD = runpy.run_path(str(DOCS / "build.py"))


def test_the_law_has_all_its_rules() -> None:
    """Its numbers run on without a gap, so that none is lost when the text is edited."""
    counts = {"L": 17, "F": 5, "S": 10, "B": 10, "C": 6, "N": 3, "X": 14, "K": 10, "R": 10}
    expected = [f"{kind}{number}" for kind, count in counts.items() for number in range(1, count + 1)]
    assert expected == RULES


def test_every_rule_has_a_test() -> None:
    """Whoever adds a rule adds its test."""
    tests = "\n".join(path.read_text("utf-8") for path in HERE.glob("test_*.py"))
    named = set(re.findall(r"def test_([LFSBCNXKR]\d+)_", tests))
    assert [rule for rule in RULES if rule not in named] == []


def test_every_test_is_in_the_file_of_its_rule() -> None:
    """A file is named for the rules that its tests hold, and has few of them."""
    wrong = {
        f"{path.name}: test_{rule}"
        for path in HERE.glob("test_*.py")
        for rule in re.findall(r"def test_([LFSBCNXKR]\d+)_", path.read_text("utf-8"))
        if rule not in path.stem.split("_")
    }
    assert wrong == set()


def cited(text: str) -> Iterator[str]:
    for citation in BUILD["CITATION"].findall(text):
        yield from BUILD["RULE"].findall(citation)


def test_every_citation_names_a_rule() -> None:
    """The rule that a docstring, comment or message cites is in the law."""
    files = {path: list(cited(path.read_text("utf-8"))) for path in PACKAGE.rglob("*.py")}
    assert sum(map(len, files.values())) > 300
    assert {str(path): rule for path, rules in files.items() for rule in rules if rule not in RULES} == {}


def test_every_link_to_the_law_leads_to_a_heading() -> None:
    """Also where a heading is renamed, and whichever page has the link."""
    headings = re.findall(r"^##+ (.*)$", (DOCS / "law.md").read_text("utf-8"), re.MULTILINE)
    linked = {
        anchor
        for page in (ROOT / "README.md", *DOCS.rglob("*.md"))
        for anchor in re.findall(r"\blaw\.md#([^)\s]*)", page.read_text("utf-8"))
    }
    assert {"l12", "n1"} <= linked <= {heading.lower() for heading in headings}


def test_every_page_links_to_the_rules_that_it_cites() -> None:
    """A number alone would send its reader searching."""
    bare = {
        str(path): list(cited(path.read_text("utf-8"))) for path in (ROOT / "README.md", *DOCS.rglob("*.md"))
    }
    assert {page: rules for page, rules in bare.items() if rules} == {str(DOCS / "law.md"): ["L12"]}
