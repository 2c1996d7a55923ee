"""The word count example."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.examples.runs import RunExample

TEXTS = ["", "one", "two\ntwo\n", "Ö ö o\n\n" * 300, Path(__file__).read_text("utf-8")]


def test_it_counts_its_own_text(run_example: RunExample) -> None:
    """Without arguments it prints the ten most frequent words of its verse."""
    outcome = run_example("word_count.py")
    counts = [line.split() for line in outcome.lines]
    assert outcome.code == 0
    assert counts[:5] == [["5", "the"], ["3", "was"], ["2", "and"], ["2", "his"], ["2", "shining"]]
    assert len(counts) == 10


@pytest.mark.parametrize("text", TEXTS)
def test_it_counts_any_file(run_example: RunExample, tmp_path: Path, text: str) -> None:
    """The words of a file, and how often each occurs, are those that a Counter finds."""
    (tmp_path / "text.txt").write_text(text, "utf-8")
    outcome = run_example("word_count.py", "--arg", f"path={tmp_path / 'text.txt'}", "--arg", "top=1000000")
    counts = {word: int(count.replace(",", "")) for count, word in map(str.split, outcome.lines)}
    assert outcome.code == 0
    assert counts == Counter(re.findall(r"\w+", text.lower()))


def test_a_missing_file_is_named(run_example: RunExample, tmp_path: Path) -> None:
    """A path that leads nowhere ends the run with the path and exit code 1."""
    outcome = run_example("word_count.py", "--arg", f"path={tmp_path / 'nowhere.txt'}")
    assert outcome.code == 1
    assert "nowhere.txt" in outcome.summary
