"""The tutorial: a reader who saves its files and types its commands sees what it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {text.split()[1]: text for language, text in BLOCKS if language == "python"}
COMMANDS = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
OUTPUTS = [text.splitlines() for language, text in BLOCKS if language == "text"]


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The reader's folder."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def run(there: Path, command: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, *shlex.split(command)[1:]]
    return subprocess.run(arguments, cwd=there, capture_output=True, text=True, check=False)


def test_every_block_is_used() -> None:
    """The page has four files, the installation, and five commands of which three show what they print."""
    assert list(FILES) == ["words.py", "checked.py", "test_checked.py", "embedded.py"]
    assert COMMANDS[0].startswith("pip install ")
    assert [command.split()[-1] for command in COMMANDS[1:]] == [
        "words.py",
        "words.py",
        "checked.py",
        "test_checked.py",
        "embedded.py",
    ]
    assert len(FILES) + len(OUTPUTS) + 5 == len(BLOCKS)


def test_the_commands_succeed(there: Path) -> None:
    """One excepted, which ends with a dead letter, as the page says."""
    codes = {command: run(there, command).returncode for command in COMMANDS[1:]}
    assert {command for command, code in codes.items() if code} == {"python -m stormlet run checked.py"}


@pytest.mark.parametrize(
    ("command", "shown"), list(zip((COMMANDS[2], COMMANDS[3], COMMANDS[5]), OUTPUTS, strict=True))
)
def test_a_command_prints_what_the_page_shows(there: Path, command: str, shown: list[str]) -> None:
    """In some order, as the tasks have theirs."""
    assert sorted(run(there, command).stdout.splitlines()) == sorted(shown)


def test_the_busy_dictionary_is_in_the_log(there: Path) -> None:
    """With the word that the page names, and the word that is none."""
    log = run(there, COMMANDS[3]).stderr
    assert "ConnectionError('the dictionary is busy') on 'a'" in log
    assert "\"'m00n' is not a word\"" in log


def test_the_program_of_the_first_page_runs(tmp_path: Path) -> None:
    """It prints each word."""
    first = (Path(__file__).parents[2] / "docs" / "index.md").read_text("utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", first, re.MULTILINE | re.DOTALL)
    (tmp_path / "words.py").write_text(program, "utf-8")
    printed = run(tmp_path, "python -m stormlet run words.py").stdout.split()
    assert sorted(printed) == sorted(
        ["the", "cow", "jumped", "over", "the", "moon", "an", "apple", "a", "day"]
    )
