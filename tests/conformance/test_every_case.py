"""No case is missing: each has a test under its id, or a line in DEVIATIONS.md that says why not."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
DEVIATIONS = (Path(__file__).parent / "DEVIATIONS.md").read_text("utf-8")
COUNTS = {
    "A": 15, "G": 11, "K": 4, "H": 2, "C": 3, "X": 3, "V": 6, "Q": 2, "T": 20, "P": 7,
    "D": 17, "FS-A": 5, "FS-L": 15, "FS-S": 5, "FS-G": 6, "FS-H": 10, "FS-C": 3,
    "KU-": 10,
}  # fmt: skip
"""How many cases each list has."""
CASES = [f"{kind}{number}" for kind, count in COUNTS.items() for number in range(1, count + 1)]
ID = r"(?:FS-[A-Z]|KU-|[A-Z])\d+"


def ids_of_tests() -> set[str]:
    """The ids in the names of tests: ``test_A9_A10_…``, ``test_KU5_…``, and in core ``test_storm_a13_…``."""
    names = [
        name.upper().replace("STORM_", "").replace("FS_", "FS-").replace("KU", "KU-")
        for folder in ("conformance", "core")
        for path in (TESTS / folder).glob("test_*.py")
        for name in re.findall(r"def test_(\w+)\(", path.read_text("utf-8"))
    ]
    return {id for name in names for id in re.findall(rf"(?:^|(?<=\d_)){ID}(?=_)", name)}


def excused() -> set[str]:
    """The ids that begin a row or a sentence of the last two sections, ranges such as "G5 to G8" included."""
    text = DEVIATIONS.split("## Not recreated", 1)[1]
    ranges = re.findall(r"\b([A-Z])(\d+) to \1(\d+)", text)
    within = {f"{kind}{number}" for kind, low, high in ranges for number in range(int(low), int(high) + 1)}
    return within | set(re.findall(ID, text))


def test_every_case_has_its_test_or_its_reason() -> None:
    """Of all the lists."""
    there = ids_of_tests() | excused()
    assert [case for case in CASES if case not in there] == []


def test_every_deviation_is_of_a_case_that_is_tested() -> None:
    """What is other than in the case is asserted by a test under its id, or by the one that is named instead."""
    rows = DEVIATIONS.split("## Other than in the case", 1)[1].split("## Not recreated", 1)[0]
    listed = {id for row in re.findall(r"^\| ([^|]+) \|", rows, re.MULTILINE) for id in re.findall(ID, row)}
    assert len(listed) > 40
    assert sorted(listed - ids_of_tests() - excused()) == []
