"""The command line before and after its commands: help, wrong usage, exit codes."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from stormlet.cli import app, main
from stormlet.cli.app import COMMANDS
from tests.cli.flows import write

PROGRAM = [sys.executable, "-m", "stormlet"]
THERE = [name for name in COMMANDS if importlib.util.find_spec(f"stormlet.cli.{name.replace('-', '_')}")]


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a terminal of the usual size."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_the_help_lists_the_commands_in_the_order_of_use(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line each, with what it does."""
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: stormlet COMMAND\n")
    listed = re.findall(r"^  ([a-z][a-z-]+)  +(.*?) *$", shown, re.MULTILINE)
    assert listed == list(COMMANDS.items())
    assert "\nExamples:\n  stormlet new " in shown


@pytest.mark.parametrize("command", THERE)
def test_the_help_of_a_command_has_its_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are commands of stormlet, and nothing is wider than 80 columns or drawn with boxes."""
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    examples = import_module(f"stormlet.cli.{command.replace('-', '_')}").EXAMPLES.splitlines()
    assert shown.startswith(f"Usage: stormlet {command}")
    unbroken = re.sub(r" \\\n +", " ", shown).rstrip()
    assert unbroken.endswith("\n".join(("Examples:", *(f"  {line}" for line in examples))))
    assert all(f"stormlet {command}" in line for line in examples)
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.isascii()


def test_the_text_of_a_command_is_wrapped_for_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines of a docstring are joined before they are broken anew; its paragraphs stay."""
    monkeypatch.setenv("COLUMNS", "400")
    main(["bench", "--help"])
    assert "on this machine.\n\nThe same work without" in capsys.readouterr().out
    main(["run", "--help"])
    assert "it, a third one kills. " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message", "help_of"),
    [
        (["fly"], "there is no command 'fly'; there are new, check, graph", "stormlet"),
        (["runn", "flow.py"], "there is no command 'runn'; did you mean run?", "stormlet"),
        (["--fly"], "there is no option '--fly' before the command", "stormlet"),
        (["run"], "TARGET is missing", "stormlet run"),
        (["run", "flow.py", "other.py"], "unexpected 'other.py'", "stormlet run"),
        (["run", "flow.py", "--sett", "a=1"], "Unknown option: --sett. Did you mean --set?", "stormlet run"),
        (["run", "flow.py", "--set"], "--set needs a value", "stormlet run"),
        (["bench", "--rounds", "many"], "--rounds: 'many' is no whole number", "stormlet bench"),
        (["bench", "--rounds", "1.7"], "--rounds: '1.7' is no whole number", "stormlet bench"),
        (["run", "flow.py", "--seed", "1.5"], "--seed: '1.5' is no whole number", "stormlet run"),
        (["dead-letters", "f", "--last", "2.5"], "'2.5' is no whole number", "stormlet dead-letters"),
        (["bench", "--rounds", "0"], "--rounds. Must be >= 1", "stormlet bench"),
        (["bench", "--scale", "inf"], "--scale. Must be <= 1000", "stormlet bench"),
    ],
)
def test_wrong_usage_is_2_and_says_where_to_look(
    arguments: list[str], message: str, help_of: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was wrong, and the way out, on standard error; nothing on standard output."""
    write("raise SystemExit('it was loaded')")
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    said, way_out = output.err.splitlines()
    assert said.startswith("stormlet: ")
    assert message in said
    assert way_out == f"'{help_of} --help' shows more"


def test_the_module_goes_by_the_name_of_the_script() -> None:
    """``python -m stormlet`` and ``stormlet`` say the same of themselves."""
    shown = subprocess.run(PROGRAM, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("Usage: stormlet COMMAND")


@pytest.mark.parametrize(
    ("arguments", "modules"),
    [
        (["--help"], ["run", "bench", "new", "dead_letters", "check"]),
        (["--version"], ["run", "bench", "new", "dead_letters", "check"]),
        (["bench", "--help"], ["run", "new", "dead_letters", "check"]),
    ],
)
def test_a_command_is_loaded_when_it_is_called(arguments: list[str], modules: list[str]) -> None:
    """Help and version do not wait for the imports of commands that nobody called."""
    code = f"import sys; from stormlet.cli import main; main({arguments}); print(*sys.modules, sep='\\n')"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {f"stormlet.cli.{module}" for module in modules} & set(shown.splitlines()) == set()


def test_a_closed_output_is_no_error() -> None:
    """When the reader of its output has gone, the command ends quietly."""
    reading, writing = os.pipe()
    os.close(reading)
    finished = subprocess.run([*PROGRAM, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (finished.returncode, finished.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["bench", "--help"]])
def test_an_output_that_cannot_be_written_is_one_message(arguments: list[str]) -> None:
    """As on a full disk."""
    with Path("/dev/full").open("wb") as full:
        finished = subprocess.run(
            [*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert finished.returncode == 1
    assert finished.stderr == "stormlet: the output cannot be written: No space left on device\n"


def test_no_output_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output may have been closed before Python began."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["dead-letters", "/dev/null", "--json"]) == 0


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    """The library needs none of it, so it may be missing."""
    code = (
        "import sys, importlib.machinery\n"
        "find = importlib.machinery.PathFinder.find_spec\n"
        "importlib.machinery.PathFinder.find_spec = classmethod(\n"
        f"    lambda cls, name, *rest: None if name.split('.')[0] == {missing!r} else find(name, *rest))\n"
        "from stormlet.cli import main\n"
        "sys.exit(main(['--help']))"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert finished.stderr == f"stormlet: the command line needs {missing}: pip install 'stormlet[cli]'\n"


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends a command as it ends any other."""

    def interrupt(called: str | None, within: str | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "_app", interrupt)
    assert main(["bench"]) == 130
