"""The README: its code runs, and does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [
    line.partition("  #")[0].split()[1:]
    for language, text in BLOCKS
    for line in text.splitlines()
    if language == "sh" and line.startswith("python -m")
]
TEXT = "the cow jumped over the moon an apple a day the moon again"
WORDS = Counter(TEXT.split())


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A directory where the README's blocks are saved under the names that it gives them."""
    for name, text in zip(("word_count.py", "embedding.py", "test_words.py"), PYTHON, strict=True):
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def run(there: Path, *arguments: str) -> str:
    """What a Python program prints there; it must succeed."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=there, capture_output=True, text=True, check=True).stdout


def test_every_block_is_run() -> None:
    """There is no code but the programs, the three commands for CI, and those that are run here one after another."""
    lines = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
    in_ci = [line for line in lines if line.startswith("python3 -m venv .venv && ")]
    assert {language for language, _ in BLOCKS} == {"python", "sh"}
    assert len(PYTHON) == 3
    assert len(in_ci) == 3
    assert len(lines) == len(in_ci) + len(COMMANDS)


def test_the_commands_run(there: Path) -> None:
    """Each command succeeds, in the order of the README."""
    for command in COMMANDS:
        run(there, *command)
    assert (there / "word_count.svg").read_text("utf-8").startswith("<")


def test_the_word_count_runs(there: Path) -> None:
    """The first program prints a total for each word that it has counted."""
    totals = run(there, "-m", "stormlet", "run", "word_count.py").splitlines()
    assert Counter(totals) == Counter(
        f"Total(word={word!r}, count={count})" for word in WORDS for count in range(1, WORDS[word] + 1)
    )


def test_the_word_count_is_short() -> None:
    """A first program of 25 lines of code."""
    assert sum(1 for line in PYTHON[0].splitlines() if line.strip()) <= 25


def test_the_embedded_topology_runs(there: Path) -> None:
    """The second program gets the totals of its own message, and the bolt has counted all the words."""
    lines = run(there, "embedding.py").splitlines()
    assert "[Total(word='hello', count=1), Total(word='hello', count=2)]" in lines
    assert lines[-1] == str(WORDS.total() + 2)


def test_the_test_passes(there: Path) -> None:
    """The test that it shows passes on simulated time."""
    assert "1 passed" in run(there, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_words.py")


@pytest.mark.parametrize("mark", ["example", "Spark", "test"])
def test_a_command_is_one_line(mark: str) -> None:
    """Each of the three commands stands where CI looks for it, on one line."""
    found = re.findall(rf"<!-- the {mark} command -->\n```sh\n(.*?)```", README, re.DOTALL)
    assert len(found) == 1
    assert found[0].count("\n") == 1
    assert found[0].startswith("python3 -m venv .venv && ")


def test_the_picture_is_what_graph_draws(tmp_path: Path) -> None:
    """The README's picture has the components and groupings that the example has now."""
    root = Path(__file__).parents[2]
    run(root, "-m", "stormlet", "graph", "examples/flights.py", "--output", str(tmp_path / "now.svg"))
    drawn, now = (
        re.findall(r">([^<>]*\w[^<>]*)</text>", path.read_text("utf-8"))
        for path in (root / "docs" / "flights.svg", tmp_path / "now.svg")
    )
    assert "fields origin, destination" in drawn
    assert drawn == now
