"""The page about testing: its tests pass, under the names that it gives them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_block_is_a_file() -> None:
    """Each block is Python, and begins with the name of the file that it is."""
    assert {language for language, _ in BLOCKS} == {"python"}
    names = [re.match(r"# (\w+\.py)\n", text) for _, text in BLOCKS]
    assert all(names)
    assert len({name[1] for name in names if name}) == len(BLOCKS) == 8


def test_its_tests_pass(tmp_path: Path) -> None:
    """All the files in one folder, in a pytest run of its own; a test of each file is among those that pass."""
    for _, text in BLOCKS:
        (tmp_path / text.split()[1]).write_text(text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    passed = re.findall(r"^(\w+\.py)::\S+ PASSED", done.stdout, re.MULTILINE)
    assert set(passed) == {path.name for path in tmp_path.glob("test_*.py")}
    assert len(passed) == 9


def test_every_name_of_the_kit_is_on_the_page() -> None:
    """What stormlet.testing exports is mentioned, results excepted, which are what calls return, and simulations."""
    from stormlet import testing

    results = {
        "BoltResult",
        "Completed",
        "Emission",
        "InputResult",
        "Leak",
        "NotCompleted",
        "Outcome",
        "Settled",
    }
    ours = [name for name in testing.__all__ if ".chaos." not in getattr(testing, name).__module__]
    assert [name for name in ours if name not in PAGE and name not in results] == []


@pytest.mark.parametrize("kind", ["inputs", "trees", "values", "errors", "tasks", "threads"])
def test_every_kind_of_leak_is_on_the_page(kind: str) -> None:
    """The table has each."""
    assert f"| `{kind}` |" in PAGE
