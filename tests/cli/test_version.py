"""``--version``."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from stormlet.acceleration import is_compiled
from stormlet.cli import main
from stormlet.cli import version as version_module


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

    monkeypatch.setattr(version_module, "version", missing)
    assert "pyspark not installed" in version_module.versions().splitlines()


def test_nothing_is_imported_for_it() -> None:
    """What is installed tells its version without being loaded."""
    code = "import sys; from stormlet.cli.version import versions; versions(); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"uvloop", "cyclopts", "rich", "pyspark", "pyarrow"} & set(shown.split()) == set()


def test_the_number_stands_in_one_place() -> None:
    """In pyproject.toml, and in no module."""
    package = Path(version_module.__file__).parents[1]
    assert [
        file.name for file in package.rglob("*.py") if version("stormlet") in file.read_text("utf-8")
    ] == []
