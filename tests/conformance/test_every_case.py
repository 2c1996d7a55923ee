"""No case is missing: each has a test under its id, or a line in DEVIATIONS.md that says where it is or why not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
DEVIATIONS = (Path(__file__).parent / "DEVIATIONS.md").read_text("utf-8")
COUNTS = {
    "A": 15, "G": 11, "K": 4, "H": 2, "C": 3, "X": 3, "V": 6, "Q": 2, "T": 20, "P": 7,
    "D": 17, "FS-A": 5, "FS-L": 15, "FS-S": 5, "FS-G": 6, "FS-H": 10, "FS-C": 3,
    "KU-": 10, "S": 6, "TR": 10, "TX": 6,
}  # fmt: skip
"""How many cases each list has."""
CASES = [f"{kind}{number}" for kind, count in COUNTS.items() for number in range(1, count + 1)]
ID = r"(?:FS-[A-Z]|KU-|TR|TX|[A-Z])\d+"


def names_in(*folders: str) -> Iterator[str]:
    """The names of their tests."""
    for folder in folders:
        for path in (TESTS / folder).glob("test_*.py"):
            yield from re.findall(r"def (test_\w+)\(", path.read_text("utf-8"))


def ids_of_tests() -> set[str]:
    """The ids in the names of tests: ``test_A9_A10_…``, ``test_KU5_…``, and in core ``test_storm_a13_…``."""
    names = [
        name.removeprefix("test_").upper().replace("STORM_", "").replace("FS_", "FS-").replace("KU", "KU-")
        for name in names_in("conformance", "core")
    ]
    return {id for name in names for id in re.findall(rf"(?:^|(?<=\d_)){ID}(?=_)", name)}


def rows(heading: str) -> dict[str, str]:
    """The table below this heading: its first column, and the rest."""
    section = DEVIATIONS.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return dict(re.findall(r"^\| ([^|]+) \| (.*) \|$", section, re.MULTILINE)[1:])


def ids_in(cases: dict[str, str]) -> set[str]:
    return {id for case in cases for id in re.findall(ID, case)}


STATED = rows("Stated by a law test")


def excused() -> set[str]:
    """The ids that begin a row or a sentence of the last two sections, ranges such as "G5 to G8" included."""
    text = DEVIATIONS.split("## Not recreated", 1)[1]
    ranges = re.findall(r"\b(TR|TX|[A-Z])(\d+) to \1(\d+)", text)
    within = {f"{kind}{number}" for kind, low, high in ranges for number in range(int(low), int(high) + 1)}
    return within | set(re.findall(ID, text))


def test_every_case_has_its_test_or_its_reason() -> None:
    """Of all the lists."""
    there = ids_of_tests() | ids_in(STATED) | excused()
    assert [case for case in CASES if case not in there] == []


def test_every_deviation_is_of_a_case_that_is_tested() -> None:
    """A deviation is asserted by a test under the id of its case, or by the one that is named instead."""
    listed = ids_in(rows("Other than in the case"))
    assert len(listed) > 40
    assert sorted(listed - ids_of_tests() - ids_in(STATED) - excused()) == []


def test_every_case_that_a_law_test_states_names_it() -> None:
    """The test is in ``tests/law``, whatever it is renamed to, and the case is one of the lists."""
    there = set(names_in("law"))
    assert len(STATED) > 30
    assert ids_in(STATED) <= set(CASES)
    named = {case: set(re.findall(r"`(\w+)`", tests)) for case, tests in STATED.items()}
    assert {case: tests - there for case, tests in named.items() if not tests or tests - there} == {}
