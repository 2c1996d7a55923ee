"""The ``new`` command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stormlet.cli import main

REPOSITORY = Path(__file__).parents[2]
RULES = [
    "--config",
    str(REPOSITORY / "pyproject.toml"),
    "--config",
    "lint.isort.known-first-party = ['rooms']",
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What it writes."""
    place = tmp_path_factory.mktemp("new")
    subprocess.run(
        [sys.executable, "-m", "stormlet", "new", "rooms"], cwd=place, check=True, capture_output=True
    )
    return place / "rooms"


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "MYPYPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_it_says_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    """What there is now, and the commands to try."""
    assert main(["new", "rooms"]) == 0
    assert sorted(each.name for each in Path("rooms").iterdir()) == ["rooms.py", "test_rooms.py"]
    assert capsys.readouterr().out == (
        "rooms has rooms.py and test_rooms.py. Next:\n\n"
        "  cd rooms\n  python -m stormlet run rooms.py\n  python -m pytest\n"
    )


def test_the_topology_runs(project: Path) -> None:
    """As it is, under the name of its directory."""
    finished = run(project, "stormlet", "run", "rooms.py")
    assert finished.returncode == 0
    assert "Mean(room='kitchen', celsius=22.0, readings=2)" in finished.stdout
    assert "rooms: " in finished.stderr


def test_its_test_passes(project: Path) -> None:
    """As it is."""
    finished = run(project, "pytest", "-q", "-p", "no:cacheprovider")
    assert finished.returncode == 0, finished.stdout
    assert "3 passed" in finished.stdout


def test_it_is_checked_without_complaints(project: Path) -> None:
    """An example should not need a warning."""
    finished = run(project, "stormlet", "check", "rooms.py", "--strict")
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize(
    "checker",
    [
        ["mypy", "--strict", "--cache-dir", os.devnull, "."],
        ["pyright", "--pythonpath", sys.executable, "."],
        ["ruff", "check", "--no-cache", *RULES, "."],
        ["ruff", "format", "--no-cache", "--check", *RULES, "."],
    ],
    ids=lambda checker: " ".join(checker[:2]),
)
def test_its_code_is_exemplary(project: Path, checker: list[str]) -> None:
    """Typed, and as we write ourselves."""
    if checker[0] == "pyright":
        settings = {"typeCheckingMode": "strict", "extraPaths": [str(REPOSITORY)]}
        (project / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    finished = run(project, *checker)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_an_empty_directory_may_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    """As of a repository that was just made; a path is followed."""
    Path("a b/rooms").mkdir(parents=True)
    assert main(["new", "a b/rooms/"]) == 0
    assert 'Topology("rooms"' in Path("a b/rooms/rooms.py").read_text("utf-8")
    assert "cd 'a b/rooms'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("Room-temperatures", "room_temperatures"),
        ("json", "json_topology"),
        ("class", "class_topology"),
        ("stormlet", "stormlet_topology"),
        ("pluggy", "pluggy_topology"),
        ("pytest-asyncio", "pytest_asyncio_topology"),
    ],
)
def test_the_files_go_by_the_name(name: str, module: str) -> None:
    """As an identifier that hides no module which Python or the project imports."""
    assert main(["new", name]) == 0
    assert sorted(each.name for each in Path(name).iterdir()) == sorted([f"{module}.py", f"test_{module}.py"])
    assert f"\nfrom {module} import " in Path(name, f"test_{module}.py").read_text("utf-8")
    assert f'Topology("{name}"' in Path(name, f"{module}.py").read_text("utf-8")


def test_two_projects_are_tested_together(tmp_path: Path) -> None:
    """By one pytest, which wants tests of different names."""
    for name in ("json", "rooms"):
        assert main(["new", name]) == 0
    finished = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider")
    assert finished.returncode == 0, finished.stdout
    assert "6 passed" in finished.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "'' is no name for a topology"),
        (".", "'.' is no name for a topology"),
        ("..", "'..' is no name for a topology"),
        ("/", "'/' is no name for a topology"),
        ("two words", "'two words' is no name for a topology: it begins with a letter"),
        ("7rooms", "'7rooms' is no name for a topology"),
        ('r"', "is no name for a topology"),
        ("nowhere/rooms", "there is no directory 'nowhere' to make 'rooms' in"),
        ("full", "'full' exists already, and nothing is overwritten"),
        ("file", "'file' exists already, and nothing is overwritten"),
        ("dangling", "dangling cannot be written: File exists"),
        ("/proc/rooms", "/proc/rooms cannot be written: No such file or directory"),
        ("r" * 300, "cannot be written: File name too long"),
    ],
)
def test_what_cannot_be_made_is_2(name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One message, and nothing is changed."""
    Path("full").mkdir()
    Path("full/mine.py").touch()
    Path("file").touch()
    Path("dangling").symlink_to("nowhere")
    before = sorted(Path().rglob("*"))
    assert main(["new", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("stormlet: ")
    assert message in line
    assert sorted(Path().rglob("*")) == before
