"""Whatever a configuration file or the environment holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example
from hypothesis import strategies as st

from stormlet.cli.parameters import PREFIX, VARIABLES
from tests.fuzz.cli_runs import DONE, WRONG_USAGE, run_cli
from tests.fuzz.fuzzed import fuzzed
from tests.fuzz.inputs import damaged, names, numbers, texts

FILE = b"""\
message_timeout = 20
ackers = 2
drain_timeout = "none"
"topology.max.spout.pending" = 100
topology.acker.executors = 2
[topology.message.timeout]
secs = 30
"""

scalars = texts | numbers | st.sampled_from(["true", "1979-05-27", '"none"', "[1]", "{a = 1}", "inf"])
lines = st.builds("{} = {}".format, names, scalars) | st.builds("[{}]".format, names) | texts
contents = (
    damaged(FILE)
    | st.binary(max_size=60)
    | st.lists(lines, max_size=5).map(lambda each: "\n".join(each).encode("utf-8", "surrogatepass"))
    | st.sampled_from([b"a = " + b"[" * 3_000, b"a." * 2_000 + b"b = 1", b"\xef\xbb\xbfackers = 1", b"\x00"])
)


@fuzzed(contents)
@example(content=b"a = " + b"[" * 3_000)
@example(content=b"a." * 2_000 + b"b = 1")
def test_any_configuration_file(there: Path, content: bytes) -> None:
    """It is taken, or the message names the file."""
    (there / "flow.toml").write_bytes(content)
    ended = run_cli(["check", "flow.py:topology", "--config", "flow.toml"])
    assert ended.is_in_our_words()
    assert ended.code == DONE or "flow.toml" in ended.err or "flow" in ended.err


@fuzzed(st.sampled_from([*VARIABLES]) | st.builds("{}{}".format, st.just(PREFIX), texts), texts | numbers)
def test_any_variable(there: Path, name: str, value: str) -> None:
    """It is taken, or the message names it."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, value)
            ended = run_cli(["check", "flow.py:topology"])
    except (ValueError, UnicodeEncodeError):  # no system has variables like that
        return
    assert ended.is_in_our_words()
    assert ended.code == DONE or PREFIX in ended.err or VARIABLES[name] in ended.err


# A NUL is in no path: no system hands a process an argument with one.
UNREADABLE = ["folder", "loop", "missing", "x" * 300, "folder/flow.py/x", "flow.py/x", "/dev/null/x"]


@pytest.fixture(scope="module")
def unreadable(there: Path) -> Path:
    """What is no file that can be read."""
    (there / "folder").mkdir()
    (there / "loop").symlink_to("loop")
    (there / "loop.py").symlink_to("loop.py")
    return there


@pytest.mark.usefixtures("unreadable")
@pytest.mark.parametrize("path", UNREADABLE)
@pytest.mark.parametrize(
    "line",
    [
        "check flow.py:topology --config",
        "run flow.py:topology --replay-dead-letters",
        "dead-letters",
        "state list",
        "state rewind --epoch 1",
        "check",
        "run",
    ],
)
def test_what_cannot_be_read(line: str, path: str) -> None:
    """The message says which file it is, with the exit code 2."""
    ended = run_cli([*line.split(), path])
    assert ended.is_in_our_words()
    assert ended.code == WRONG_USAGE
    assert path in ended.err


@pytest.mark.usefixtures("unreadable")
@pytest.mark.parametrize("path", ["folder", "loop", "missing/x", "x" * 300, "flow.py/x"])
def test_dead_letters_that_cannot_be_written(path: str) -> None:
    """Nothing runs, and the message says which file it is."""
    ended = run_cli(["run", "flow.py:topology", "--dead-letters", path])
    assert ended.code == WRONG_USAGE
    assert path in ended.err
    assert not any(Path("folder").iterdir())


@pytest.mark.usefixtures("there")
def test_a_pipe_is_not_replayed() -> None:
    """It could be read only once, and would seem to be empty; the message says so at once."""
    os.mkfifo("pipe")
    ended = run_cli(["run", "flow.py:topology", "--replay-dead-letters", "pipe"])
    assert ended.code == WRONG_USAGE
    assert (
        ended.err == "stormlet: the dead letters of pipe are read twice, which a pipe cannot; name a file\n"
    )
