"""What the command line says of errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

from stormlet.cli import main
from stormlet.cli.errors import RunFormatter, explain
from stormlet.cli.units import short_count
from stormlet.errors import (
    ConnectionLost,
    InvalidTopology,
    Reject,
    StormletError,
    TargetError,
    TopologyCrashed,
)
from stormlet.loading import load_topology
from stormlet.model.configuration import parse_setting
from tests.cli.flows import write


@pytest.fixture
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of a user's file that a test writes."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "user_file", raising=False)
    yield tmp_path / "user_file.py"
    sys.modules.pop("user_file", None)


def error_of(path: Path, text: str) -> StormletError:
    path.write_text(text, "utf-8")
    with pytest.raises(StormletError) as caught:
        load_topology(str(path), {})
    return caught.value


def test_an_error_of_the_user_is_shown_by_their_own_frames(user_file: Path) -> None:
    """The traceback begins in the user's file and ends where it raised; the last line says what stormlet was doing."""
    error = error_of(user_file, "def divide():\n    return 1 / 0\ndivide()\n")
    assert isinstance(error, TargetError)
    shown = explain(error).splitlines()
    places = [line.strip() for line in shown if line.startswith("  File")]
    assert places == [
        f'File "{user_file}", line {line}, in {where}' for line, where in ((3, "<module>"), (2, "divide"))
    ]
    assert shown[0] == "Traceback (most recent call last):"
    assert shown[-1] == f"stormlet: {user_file} cannot be loaded: ZeroDivisionError: division by zero"


def test_what_an_exception_came_from_is_trimmed_too(user_file: Path) -> None:
    """The exceptions that led to the user's, and those of a group, are shown without stormlet's frames."""
    code = """
from stormlet.model.configuration import parse_setting
try:
    parse_setting("nonsense")
except ValueError as error:
    raise ExceptionGroup("several", [error]) from error
"""
    shown = explain(error_of(user_file, code))
    assert "direct cause" in shown
    assert "configuration.py" not in shown
    assert shown.count("user_file.py") >= 3


def test_a_syntax_error_shows_its_place(user_file: Path) -> None:
    """A syntax error says itself where it is; there is no traceback to it."""
    shown = explain(error_of(user_file, "def (:\n"))
    assert shown.startswith(f'  File "{user_file}", line 1\n    def (:\n')
    assert "Traceback" not in shown


def test_an_invalid_topology_shows_the_users_line(user_file: Path) -> None:
    """Under the message stands the line of the user's file that made the topology invalid."""
    code = "from stormlet.model.configuration import parse_setting\nparse_setting('x')\n"
    error = error_of(user_file, code)
    assert isinstance(error, InvalidTopology)
    message, place, line, *marks = explain(error).splitlines()
    assert message == f"stormlet: {error}"
    assert place == f'  File "{user_file}", line 2, in <module>'
    assert line.strip() == "parse_setting('x')"
    assert set("".join(marks)) <= set(" ~^")  # Python 3.13 marks what raised, all of the line here


def test_an_error_without_a_place_is_its_message() -> None:
    """An error that no user's line raised is one line."""
    assert explain(TargetError("there is no file 'x.py'")) == "stormlet: there is no file 'x.py'"


def test_an_exception_without_frames_of_the_user_keeps_its_own() -> None:
    """Where no frame would be left, all stay: the fault is stormlet's then, and must be findable."""
    crash = TopologyCrashed("count", "lines", "next_tuple")
    crash.__cause__ = TypeError().with_traceback(ours())
    assert "units.py" in explain(crash)


def test_where_the_cause_has_frames_of_the_user_nothing_of_ours_is_shown() -> None:
    """As where Python itself turns what a generator raised into another exception."""
    scope: dict[str, object] = {}
    exec(compile("def values():\n    yield next(iter(()))", "flow.py", "exec"), scope)
    crash = TopologyCrashed("count", "lines", "next_tuple")
    try:
        sum(scope["values"]())  # type: ignore[operator]
    except RuntimeError as error:
        crash.__cause__ = error.with_traceback(ours())
    shown = explain(crash)
    assert 'File "flow.py", line 2, in values' in shown
    assert shown.count("  File ") == 1
    assert "\nRuntimeError: generator raised StopIteration\n" in shown


def test_more_causes_than_python_has_room_for_calls() -> None:
    """Exceptions that user code links in a loop."""
    error = last = ValueError(0)
    for number in range(1, 3000):
        last.__cause__ = last = ValueError(number)
    crash = TopologyCrashed("count", "lines", "next_tuple")
    crash.__cause__ = error
    shown = explain(crash)
    assert "ValueError: 0\n" in shown
    assert "ValueError: 2999\n" in shown


def ours() -> TracebackType | None:
    """Frames of stormlet's alone."""
    try:
        short_count(None)  # type: ignore[arg-type]
    except TypeError as error:
        return error.__traceback__ and error.__traceback__.tb_next
    return None


def test_an_error_of_stormlets_own_needs_no_frames() -> None:
    """A crash that an error of stormlet's caused is told in its words; there is no line of the user's to show."""
    with pytest.raises(StormletError) as caught:
        parse_setting("nonsense")
    crash = TopologyCrashed("count", "lines", "next_tuple")
    crash.__cause__ = caught.value.with_traceback(caught.tb.tb_next)
    assert explain(crash) == f"stormlet: {crash}"


def test_what_a_compiled_module_raises_needs_no_frames() -> None:
    """Its frames name its file as seen from the folder where it was built."""
    code = compile("raise error", "stormlet/runtime/bolt/worker.py", "exec")
    crash = TopologyCrashed("count", "lines", "prepare")
    with pytest.raises(ConnectionLost) as caught:
        exec(code, {"error": ConnectionLost("mq://host is gone")})
    crash.__cause__ = caught.value.with_traceback(caught.tb.tb_next)
    assert explain(crash) == f"stormlet: {crash}"


def logged(error: Exception) -> str:
    with pytest.raises(type(error)) as caught:
        raise error
    return RunFormatter().formatException((caught.type, caught.value, caught.tb))


def test_a_rejection_is_logged_without_frames() -> None:
    """What a bolt rejects is told in its words, unless another exception led to it."""
    assert logged(Reject("nothing to pay")) == ""
    because = Reject("not JSON")
    because.__cause__ = ValueError("line 1")
    assert logged(because).startswith("ValueError: line 1\n")
    assert logged(because).endswith("Reject: not JSON")


@pytest.mark.parametrize(
    "arguments",
    [
        ["flow.py", "--set", "acker=2"],
        ["flow.py", "--set", "ackers"],
        ["flow.py", "--arg", "limit"],
        ["flow.py", "--config", "nowhere.toml"],
        ["nowhere.py"],
        ["links.py"],
        ["x" * 100_000],
        ["flow.py:build", "--arg", f"x={'9' * 100_000}"],
        ["flow.py:build", "--arg", f"x={'n' * 100_000}"],
        ["flow.py:build", "--arg", f"y={'n' * 100_000}"],
        ["flow.py:build", "--arg", "n" * 100_000],
        ["flow.py", "--arg", f"x={'n' * 100_000}"],
        ["flow.py", "--set", f"ackers={'n' * 100_000}"],
        ["flow.py", "--duration", "n" * 100_000],
        ["os:path"],
        ["os"],
        ["os:link", "--arg", "n=1"],
    ],
    ids=lambda arguments: " ".join(arguments)[:30],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """There is no place in the user's code to show, and the parser's are nobody's business."""
    write(
        "topology = Topology('t')\ntopology.bolt('b', print, topology.spout('a', [1]).shuffle())\n"
        "def build(x: int): ..."
    )
    Path("links.py").symlink_to("links.py")
    assert main(["run", *arguments]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("stormlet: ")
    assert shown.count("\n") == 1
    assert len(shown) < 2100


@pytest.mark.parametrize("target", ["flow.py", "flow", "package/flow.py:name"])
def test_a_directory_that_was_removed_is_one_line(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it is the current one, no relative path leads anywhere."""
    gone = Path("gone").resolve()
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert main(["run", target]) == 2
    place = target.removesuffix(":name")
    assert capsys.readouterr().err == f"stormlet: {place} cannot be read: No such file or directory\n"


def test_the_machinery_between_two_lines_of_the_users_is_left_out(user_file: Path) -> None:
    """Neither the import system nor asyncio helps to find what is wrong."""
    (user_file.parent / "user_other.py").write_text(
        "import asyncio\nasync def f():\n    1 / 0\nasyncio.run(f())\n"
    )
    shown = explain(error_of(user_file, "import importlib\nimportlib.import_module('user_other')\n"))
    files = [line.split('"')[1] for line in shown.splitlines() if line.startswith("  File")]
    assert [Path(file).name for file in files] == ["user_file.py", "user_other.py", "user_other.py"]


def test_what_stormlet_was_doing_meanwhile_is_no_context() -> None:
    """An exception that user code raised while its task was cancelled did not come from that."""
    crash = TopologyCrashed("count", "lines[0]", "close")
    scope: dict[str, object] = {}
    exec(compile("def close():\n    raise ValueError('user')", "flow.py", "exec"), scope)
    try:
        try:
            parse_setting("nonsense")
        except StormletError as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            scope["close"]()  # type: ignore[operator]
    except ValueError as error:
        crash.__cause__ = error
    assert "During handling" not in explain(crash)
    assert "ValueError: user" in explain(crash)


EVIL = "\x1b]0;pwned\x07\x1b[2J..\r\nFAKE LOG LINE"
RAISING = f"""
def fail(value):
    raise ValueError({EVIL!r})
topology = Topology("evil", max_attempts=1)
topology.bolt({EVIL!r}, fail, topology.spout("s", [1, 2]).shuffle())
"""
CRASHING = f"""
class Evil(Exception):
    def __repr__(self):
        return {EVIL!r}
def numbers():
    yield 1
    raise Evil({EVIL!r})
topology = Topology("evil")
topology.bolt("print", print, topology.spout({EVIL!r}, numbers).shuffle())
"""
BROKEN = f"raise ValueError({EVIL!r})"
REFUSED = f"from stormlet import InvalidTopology\nraise InvalidTopology({EVIL!r})"


@pytest.mark.parametrize(
    "code", [RAISING, CRASHING, BROKEN, REFUSED], ids=["log", "crash", "load", "refusal"]
)
def test_nothing_foreign_reaches_the_terminal_raw(code: str) -> None:
    """Neither an escape sequence, nor a line that could be one of the log or of ours."""
    write(code)
    arguments = [sys.executable, "-m", "stormlet", "run", "flow.py"]
    shown = subprocess.run(arguments, capture_output=True, text=True, check=False).stderr
    assert "FAKE LOG LINE" in shown
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "\nFAKE" not in shown
