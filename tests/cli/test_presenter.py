"""What the user is told of a run, and that it never costs the run."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TextIO, cast

import pytest

from stormlet.cli.running.observation import Observation
from stormlet.cli.running.presenter import Presenter
from stormlet.cli.streams import GuardedStream
from tests.cli.figures import FAILURE, FRAME


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
    assert lines[0] == "word-count: 12.4 s"
    assert lines[-1] == "  341 times split[1]: ValueError('not a line') at flow.py:12 on '\\x00'"
    assert [line.rstrip() for line in lines] == lines
    assert "\x1b" not in stream.getvalue()
