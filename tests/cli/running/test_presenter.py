"""What the user is told of a run, and that it never costs the run."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, cast

import pytest

from stormlet.acceleration import how_it_runs
from stormlet.cli import main
from stormlet.cli.running.meter import Completion
from stormlet.cli.running.observation import Observation
from stormlet.cli.running.presenter import Presenter, progress_line
from stormlet.cli.running.streams import GuardedStream
from stormlet.report.statistics import Progress
from tests.cli.figures import BOLT, FAILURE, FRAME, SPOUT, frame_of
from tests.cli.flows import write


class Terminal(io.StringIO):
    """Says that it is a terminal, and writes to a pipe."""

    def __init__(self) -> None:
        super().__init__()
        self._reading, self._writing = os.pipe()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._writing

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def drawn(self) -> str:
        os.set_blocking(self._reading, False)
        try:
            return os.read(self._reading, 1 << 16).decode()
        except BlockingIOError:
            return ""

    def release(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """One that shows no colours."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    made = Terminal()
    yield made
    made.release()


class Broken:
    """A run that cannot be observed."""

    def frame(self) -> object:
        raise ZeroDivisionError("no frame")


class Shown:
    """A run with one frame."""

    def frame(self) -> object:
        return FRAME

    def failures(self) -> object:
        return [FAILURE]

    def drain(self) -> str:
        return ""


def presenter(errors: TextIO) -> tuple[Presenter, GuardedStream]:
    guarded = GuardedStream(errors)
    return Presenter(None, guarded), guarded


@asynccontextmanager
async def showing(presenter: Presenter, run: object) -> AsyncIterator[None]:
    """From the first frame on."""
    with presenter.showing(cast("Observation", run)):
        await asyncio.sleep(0)
        yield


@pytest.mark.asyncio
async def test_a_broken_view_ends_and_the_run_goes_on(terminal: Terminal) -> None:
    """It says so once; what is printed afterwards still arrives."""
    shows, errors = presenter(terminal)
    async with showing(shows, Broken()):
        errors.write("printed\n")
    assert terminal.drawn() == ""
    assert terminal.getvalue() == (
        "the view has ended, the run goes on: ZeroDivisionError('no frame')\nprinted\n"
    )


@pytest.mark.asyncio
async def test_the_view_is_gone_afterwards(terminal: Terminal) -> None:
    """What was drawn is erased, and what is said then goes to the stream itself."""
    shows, _ = presenter(terminal)
    async with showing(shows, Shown()):
        shows.say_at_once("at once\n")
    shows.say("said")
    drawn = terminal.drawn()
    assert "word-count" in drawn
    assert drawn.index("word-count") < drawn.index("at once") < drawn.rindex("word-count")
    assert drawn.endswith("\x1b[J")
    assert terminal.getvalue() == "said\n"


@pytest.mark.asyncio
async def test_after_the_shell_had_the_terminal_nothing_of_it_is_erased(terminal: Terminal) -> None:
    """SIGCONT, as after Ctrl-Z and fg: the next frame is drawn below; the handler of before is put back."""
    shows, _ = presenter(terminal)
    before = signal.getsignal(signal.SIGCONT)
    async with showing(shows, Shown()):
        terminal.drawn()
        signal.raise_signal(signal.SIGCONT)
    assert terminal.drawn() == ""
    assert signal.getsignal(signal.SIGCONT) == before


@pytest.mark.asyncio
async def test_nothing_is_said_where_nothing_shall_be(capfd: pytest.CaptureFixture[str]) -> None:
    """``--quiet``, or a standard error that is closed."""
    shows = Presenter(None, None)
    async with showing(shows, Broken()):
        shows.say("said")
    shows.say_at_once("at once")
    shows.summarise(FRAME, [])
    assert tuple(capfd.readouterr()) == ("", "")


def test_in_a_pipe_the_summary_has_no_control_sequences() -> None:
    """Nor spaces at the ends of its lines, nor a width."""
    stream: Any = io.StringIO()
    Presenter(None, GuardedStream(stream)).summarise(FRAME, [FAILURE])
    lines = stream.getvalue().splitlines()
    assert lines[0] == f"word-count: 12.4 s; {how_it_runs()}"
    assert lines[-1] == "  341 times split[1]: ValueError('not a line') at flow.py:12 on '\\x00'"
    assert [line.rstrip() for line in lines] == lines
    assert "\x1b" not in stream.getvalue()


# Where it drains, until there is a file "end".
IN_STEPS = """
    import asyncio, signal
    from pathlib import Path
    from stormlet.cli.running import presenter as progress
    progress.EVERY, progress.DRAIN_EVERY = 0.2, 0.1
    async def numbers():
        for number in range(5):
            yield number
            await asyncio.sleep(0.1)
    async def slow(value):
        if value == 4 and {drains}:
            signal.raise_signal(signal.SIGINT)
            while not Path("end").exists():
                await asyncio.sleep(0.01)
    topology = Topology("in steps")
    topology.bolt("slow", slow, topology.spout("numbers", numbers).shuffle())
    """


# Until it is said that it is waited for.
HANGING = """
    import asyncio, os
    from stormlet import BasicBolt
    class Hanging(BasicBolt):
        def execute(self, tup, out): ...
        async def cleanup(self):
            for _ in range(3000):
                if b"draining for" in os.pread(2, 100_000, 0):
                    return
                await asyncio.sleep(0.02)
    topology = Topology("hanging")
    topology.bolt("hanging", Hanging, topology.spout("numbers", [1]).shuffle())
    """


def run(drains: bool) -> list[str]:
    write(IN_STEPS.format(drains=drains))
    arguments = [sys.executable, "-m", "stormlet", "run", "flow.py"]
    lines: list[str] = []
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line.removesuffix("\n"))
            if sum(each.startswith("draining for") for each in lines) == 2:
                Path("end").touch()
    assert not any("\x1b" in line for line in lines)
    assert process.returncode == (128 + signal.SIGINT if drains else 0)
    return lines


def test_a_line_says_how_far_every_spout_is() -> None:
    """Exact counts, and the rate of all bolts together."""
    assert progress_line(FRAME) == ("12.4 s  lines 11,340 acked, 0 failed, 1,000 pending; 1,000 tuples/s")


def test_a_line_is_one_line() -> None:
    """Whatever id a spout has."""
    line = progress_line(frame_of(replace(SPOUT, id="evil\x1b[2J\n"), BOLT))
    assert line.startswith("12.4 s  evil\\x1b[2J\\n 11,340 acked")


def test_it_says_what_was_given_up_and_what_is_left() -> None:
    """Where there is something to say."""
    frame = replace(FRAME, dead_letters=3, progress=Completion(45, 100, 12.2))
    assert progress_line(frame).endswith("; 3 dead letters; 45% done, 12 s left")


def test_it_says_what_components_report() -> None:
    """Exactly, four of them at most."""
    report = Progress(67_355, 336_776, "rows read")
    line = progress_line(replace(FRAME, reports={f"flights{number}": report for number in range(7)}))
    assert "; flights0: 67,355 of 336,776 rows read, 20%; flights1: " in line
    assert line.count("flights") == 4


def test_of_many_spouts_four_are_named() -> None:
    """A line stays a line."""
    spouts = [replace(SPOUT, id=f"spout{number}") for number in range(7)]
    line = progress_line(frame_of(*spouts, BOLT))
    assert [f"spout{number}" in line for number in range(7)] == [True] * 4 + [False] * 3
    assert "; and 3 spouts more; " in line


def test_one_is_no_plural() -> None:
    """Of what is counted."""
    spouts = [replace(SPOUT, id=f"spout{number}") for number in range(5)]
    line = progress_line(replace(frame_of(*spouts, BOLT), dead_letters=1))
    assert "; and 1 spout more; " in line
    assert line.endswith("; 1 dead letter")


def test_a_run_in_a_pipe_reports_from_time_to_time() -> None:
    """Without a terminal there are lines, without control characters."""
    lines = [line for line in run(drains=False) if "acked, 0 failed" in line]
    assert all(re.match(r"\d+\.\d s  numbers \d acked, ", line) for line in lines)
    assert 1 <= len(lines) <= 1 + float(lines[-1].partition(" s")[0]) / 0.2


def test_a_drain_that_takes_long_says_what_it_waits_for() -> None:
    """From its first second on, at intervals."""
    lines = [line for line in run(drains=True) if line.startswith("draining for")]
    assert re.fullmatch(
        r"draining for [1-9]\d*\.\d s: waits for numbers: 1 pending; slow: 1 in hand or held", lines[0]
    )
    assert len(lines) >= 2


def test_a_cleanup_that_takes_long_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    """Also where nobody has asked for the end."""
    write(HANGING)
    assert main(["run", "flow.py"]) == 0
    (line,) = [each for each in capfd.readouterr().err.splitlines() if each.startswith("draining for")]
    assert line.endswith("waits for close or cleanup of hanging[0]")
