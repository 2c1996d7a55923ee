"""Every rule of the law has a test that is named for it."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
RULES = re.findall(r"^- ([LFSBCN]\d+) ", (HERE / "LAW.md").read_text("utf-8"), re.MULTILINE)


def test_the_law_has_all_its_rules() -> None:
    """Its numbers run on without a gap, so that none is lost when the text is edited."""
    counts = {"L": 17, "F": 4, "S": 8, "B": 10, "C": 6, "N": 3}
    expected = [f"{kind}{number}" for kind, count in counts.items() for number in range(1, count + 1)]
    assert expected == RULES


def test_every_rule_has_a_test() -> None:
    """Whoever adds a rule adds its test."""
    tests = "\n".join(path.read_text("utf-8") for path in HERE.glob("test_*.py"))
    named = set(re.findall(r"def test_([LFSBCN]\d+)_", tests))
    assert [rule for rule in RULES if rule not in named] == []
