"""How help looks."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from stormlet.acceleration import is_compiled
from stormlet.cli import help as version_module
from stormlet.cli import main
from stormlet.cli.app import COMMANDS
from stormlet.cli.help import epilogue

LONG = "stormlet run topology.py --set ackers=2 --set message_timeout=none --arg path="


def test_examples_stand_under_their_heading() -> None:
    """One a line, as they are."""
    assert (
        epilogue("stormlet run a.py\nstormlet run b.py")
        == "Examples:\n  stormlet run a.py\n  stormlet run b.py"
    )


def test_an_example_that_is_too_long_is_broken_as_a_shell_takes_it() -> None:
    """At a space, with a backslash, and further to the right."""
    assert epilogue(f"{LONG}words.txt --quiet") == (
        "Examples:\n"
        "  stormlet run topology.py --set ackers=2 --set message_timeout=none --arg \\\n"
        "      path=words.txt --quiet"
    )


@pytest.mark.parametrize("quote", ["'", '"'])
def test_an_example_is_not_broken_inside_quotes(quote: str) -> None:
    """There a backslash would be part of the text."""
    quoted = f"{quote}some words in a row{quote}"
    assert epilogue(f"{LONG}{quoted}").endswith(f" \\\n      path={quoted}")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_text_of_an_option_opens_with_a_noun_or_a_verb(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never with a question word, as in "How often each workload runs"."""
    main([command, "--help"])
    openings = re.findall(r"^  \S.*?  +(\w+)", capsys.readouterr().out, re.MULTILINE)
    assert openings
    assert {"How", "What", "When", "Where", "Whether", "Which", "Who", "Whom", "Why"} & {*openings} == set()


def test_it_lists_the_versions_that_matter(capsys: pytest.CaptureFixture[str]) -> None:
    """stormlet first, then Python, the packages that it works with, and the platform."""
    runs = "compiled" if is_compiled() else "interpreted"
    assert main(["--version"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == [
        f"stormlet {version('stormlet')} ({runs})",
        f"{platform.python_implementation()} {platform.python_version()}",
        f"msgspec {version('msgspec')}",
    ]
    names = ["uvloop", "cyclopts", "rich", "fast-sugiyama", "pyspark", "pyarrow"]
    assert [line.split()[0] for line in shown[3:9]] == names
    assert shown[9:] == [platform.platform()]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is not there has no version."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert "pyspark not installed" in version_module.versions().splitlines()


def test_nothing_is_imported_for_it() -> None:
    """What is installed tells its version without being loaded."""
    code = "import sys; from stormlet.cli.help import versions; versions(); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"uvloop", "cyclopts", "rich", "pyspark", "pyarrow"} & set(shown.split()) == set()


def test_the_number_stands_in_one_place() -> None:
    """In pyproject.toml, and in no module."""
    package = Path(version_module.__file__).parents[1]
    assert [
        file.name for file in package.rglob("*.py") if version("stormlet") in file.read_text("utf-8")
    ] == []
