"""Ctrl-C before there is anything to drain, and after it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from stormlet.cli import main
from stormlet.starting import is_program
from tests.cli.flows import write

FLOW = "topology = Topology('t')\ntopology.bolt('b', print, topology.spout('s', [1]).shuffle())\n"

INTERRUPTED = """
import atexit, signal, sys
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
if {module!r} == "the end":
    atexit.register(signal.raise_signal, signal.SIGINT)
sys.argv = [{program!r}, "run", "flow.py"]
from stormlet.cli import main
sys.exit(main())
"""


def interrupted(program: str, module: str) -> subprocess.CompletedProcess[str]:
    """Ctrl-C comes when this module is to be imported."""
    write(FLOW)
    code = INTERRUPTED.format(program=program, module=module)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "module", ["stormlet.core.tracebacks", "stormlet.topology", "cyclopts", "stormlet.cli.run", "the end"]
)
def test_while_nothing_runs_it_ends_the_process(module: str) -> None:
    """By the signal, and without a word about what was being imported."""
    ended = interrupted("/usr/bin/stormlet", module)
    assert (ended.returncode, ended.stderr.partition("t: ")[0]) == (-signal.SIGINT, "")


CLOSED = """
import signal
async def interrupting():
    try:
        yield
    finally:
        signal.raise_signal(signal.SIGINT)
left = interrupting()
async def leave(value):
    await anext(left)
topology = Topology("t")
topology.bolt("leaves", leave, topology.spout("s", [1]).shuffle())
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_while_the_loop_is_closed_it_ends_the_process(loop: str) -> None:
    """A KeyboardInterrupt would leave uvloop's running, which raises an error of its own then; the run is over, and
    has said how it ended."""
    write(CLOSED)
    command = [sys.executable, "-m", "stormlet", "run", "flow.py", "--loop", loop]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr.endswith("\ndead letters: 0\n")


def test_in_another_program_it_does_what_it_does_in_python() -> None:
    """Whoever imports stormlet may have more to end."""
    ended = interrupted("host", "stormlet.core.tracebacks")
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr.endswith("\nKeyboardInterrupt\n")


@pytest.mark.parametrize(
    ("name", "words", "is_ours"),
    [
        ("-m", ["python", "-m", "stormlet", "run"], True),
        ("-m", ["python", "-X", "dev", "-m", "stormlet"], True),
        ("-m", ["python", "-m", "pytest", "stormlet"], False),
        ("/usr/bin/stormlet", ["python", "/usr/bin/stormlet"], True),
        ("stormlet.exe", ["stormlet.exe"], True),
        ("host.py", ["python", "host.py", "stormlet"], False),
        ("", ["python"], False),
    ],
)
def test_which_program_is_ours(name: str, words: list[str], is_ours: bool) -> None:
    """The script, and the module as long as Python looks for it."""
    assert is_program(name, words) is is_ours


PY4J = """
import logging, signal
def interrupted(number, frame):  # as PySpark has it
    try:
        try:
            raise RuntimeError("reentrant call inside <_io.BufferedReader name=4>")
        except RuntimeError as error:
            raise OSError("Error while sending or receiving") from error
    except OSError:
        logging.exception("Exception while sending command.")
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        try:
            raise BrokenPipeError
        except BrokenPipeError:
            for name in ("py4j.clientserver", "py4j.java_gateway"):
                logging.getLogger(name).exception("Exception occurred while shutting down connection")
        raise
signal.signal(signal.SIGINT, interrupted)
signal.raise_signal(signal.SIGINT)
"""


def test_while_a_module_has_spark_work_it_is_one_line(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """PySpark would cancel its jobs, by a call in the midst of another one, and Py4J tells of it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        write(PY4J)
        assert main(["run", "flow.py"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "stormlet: interrupted\n"
    assert not caplog.records


def test_other_errors_that_are_logged_meanwhile_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Of the user's own code."""
    write(
        "import logging\ntry: raise OSError('mine')\nexcept OSError: logging.exception('!'); raise KeyboardInterrupt"
    )
    assert main(["run", "flow.py"]) == 130
    assert "OSError: mine" in caplog.text


def test_while_the_users_code_is_loaded_it_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever libraries have to say of it, as Py4J has."""
    write(
        "import logging\ntry: raise KeyboardInterrupt\nexcept KeyboardInterrupt: logging.exception('!'); raise"
    )
    assert main(["run", "flow.py"]) == 130
    assert capsys.readouterr().err == "stormlet: interrupted\n"
