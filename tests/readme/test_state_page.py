"""The page about state: a reader who saves its files and types its commands sees what it shows."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "state.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {text.split()[1]: text for language, text in BLOCKS if language == "python" and text[0] == "#"}
SHOWN = [(language, text) for language, text in BLOCKS if language in {"sh", "text"}]
"""Commands, and what they print, one after another."""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The reader's folder."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def run(there: Path, commands: str) -> str:
    """What the last of these lines prints; each must succeed."""
    printed = ""
    for line in commands.splitlines():
        command = re.sub(r"^python ", f"{sys.executable} ", line)
        done = subprocess.run(command, shell=True, cwd=there, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        printed = done.stdout
    return printed


def test_the_commands_print_what_the_page_shows(there: Path) -> None:
    """Where it shows that; all of them succeed, one after another."""
    printed, shown = "", 0
    for language, text in SHOWN:
        if language == "sh":
            printed = run(there, text)
        else:
            assert printed == text
            shown += 1
    assert shown == 4
    assert rows(there / "counts.state", "totals") == [("and", 1), ("the", 4), ("moon", 2)]
    assert rows(there / "log.db", "history") == [("and", 1), ("the", 4), ("moon", 2)]


def rows(path: Path, table: str) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def test_every_program_runs(there: Path) -> None:
    """Also those for which no command is shown."""
    (there / "words.txt").write_text("the moon\n", "utf-8")
    assert list(FILES) == [
        *("counts.py", "tables.py", "patient.py", "lengths.py", "reminders.py", "functions.py", "merged.py"),
    ]
    for name in FILES:
        run(there, f"python -m stormlet run {name} --state {name}.state")
    assert rows(there / "history.db", "history") == [("the", 1), ("moon", 1)]
