"""The last lines of a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
from collections.abc import Iterator

import pytest

from stormlet.cli.running import screen as screens
from stormlet.cli.running.screen import Screen
from tests.cli.terminal import read_until


class Pipe:
    """Reads what a screen writes."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)

    def read(self) -> str:
        """What was written since the last time."""
        try:
            return os.read(self._reading, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        os.close(self._reading)
        os.close(self.writing)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A pipe in place of a terminal."""
    made = Pipe()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is printed because it has waited for long, unless the test is about that."""
    monkeypatch.setattr(screens, "LONGEST_DELAY", 60.0)


def fresh(pipe: Pipe, encoding: str = "utf-8") -> Screen:
    """A screen that has just drawn."""
    screen = Screen(pipe.writing, encoding)
    screen.draw([("one", 3), ("two", 3)])
    assert pipe.read() == "one\ntwo\n"
    return screen


def test_a_frame_replaces_the_last_one_below_what_was_printed(pipe: Pipe) -> None:
    """In one write: up over the old lines, what was printed, the new lines."""
    screen = fresh(pipe)
    screen.print("printed\n")
    assert pipe.read() == ""
    screen.draw([("three", 5)])
    assert pipe.read() == "\r\x1b[2A\x1b[Jprinted\nthree\n"
    screen.draw([("four", 4)])
    assert pipe.read() == "\r\x1b[1A\x1b[Jfour\n"


def test_nothing_is_written_where_nothing_has_changed(pipe: Pipe) -> None:
    """A frame that equals the last one costs nothing."""
    screen = fresh(pipe)
    screen.draw([("one", 3), ("two", 3)])
    assert pipe.read() == ""


def test_every_stream_has_its_own_unended_line(pipe: Pipe) -> None:
    """What has no end yet is not mixed with the lines of others, and comes last if it never has one."""
    screen = fresh(pipe)
    for text, source in (("a", 1), ("b", 2), ("c\nd", 1), ("e\n", 2), ("f", 1)):
        screen.print(text, source)
    screen.close()
    assert pipe.read() == "\r\x1b[2A\x1b[Jac\nbe\ndf\n"


def test_much_is_printed_at_once(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory for what waits is bounded, also for a line that never ends."""
    monkeypatch.setattr(screens, "MOST_BUFFERED", 100)
    screen = fresh(pipe)
    line = "x" * 50
    screen.print(f"{line}\n")
    assert pipe.read() == ""
    screen.print(f"{line}\n")
    assert pipe.read() == f"\r\x1b[2A\x1b[J{line}\n{line}\none\ntwo\n"
    screen.print(line)
    screen.print(line + "y")
    assert pipe.read().endswith("xy\none\ntwo\n")


def test_what_waited_for_long_is_printed_without_a_frame(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """While user code holds the loop, its own prints bring the last frame along."""
    monkeypatch.setattr(screens, "LONGEST_DELAY", -1.0)
    screen = fresh(pipe)
    screen.print("late\n")
    assert pipe.read() == "\r\x1b[2A\x1b[Jlate\none\ntwo\n"


def test_a_signal_handler_that_interrupts_a_write_leaves_it_whole(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says is printed as soon as the frame is there."""
    screen = fresh(pipe)
    write = os.write
    said = iter(["said\n"])

    def interrupted(descriptor: int, data: bytes) -> int:
        for text in said:
            screen.print_at_once(text)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", interrupted)
    screen.draw([("three", 5)])
    assert pipe.read() == "\r\x1b[2A\x1b[Jthree\n\r\x1b[1A\x1b[Jsaid\nthree\n"


def test_what_is_said_at_once_does_not_wait(pipe: Pipe) -> None:
    """It comes after what was printed before."""
    screen = fresh(pipe)
    screen.print("printed\n")
    screen.print_at_once("said\n")
    assert pipe.read() == "\r\x1b[2A\x1b[Jprinted\nsaid\none\ntwo\n"


def test_lines_that_a_narrower_terminal_wraps_are_counted() -> None:
    """After a resize the whole old frame is erased, but never more than the terminal has."""
    master, slave = pty.openpty()
    screen = Screen(slave, "utf-8")

    def resize(columns: int, lines: int) -> None:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    resize(80, 24)
    screen.draw([("x" * 60, 60), ("y", 1)])
    resize(25, 24)
    screen.draw([("z", 1)])
    resize(1, 3)
    screen.draw([("z" * 40, 40)])
    screen.draw([("end", 3)])
    written = read_until(master, "end\r\n")
    os.close(master)
    os.close(slave)
    assert "\x1b[4A" in written
    assert written.endswith("\x1b[2A\x1b[Jend\r\n")


def test_after_somebody_else_wrote_the_next_frame_stands_below(pipe: Pipe) -> None:
    """Nothing of theirs is erased."""
    screen = fresh(pipe)
    screen.forget()
    screen.draw([("three", 5)])
    assert pipe.read() == "three\n"


def test_a_terminal_without_unicode_gets_other_characters(pipe: Pipe) -> None:
    """In frames, of the same width; what a topology prints is escaped."""
    screen = Screen(pipe.writing, "ascii")
    screen.print("größe\n")
    screen.draw([("━╸─ 3 µs ö…", 11)])
    assert pipe.read() == "gr\\xf6\\xdfe\n##- 3 us ?~\n"


def test_threads_may_print(pipe: Pipe) -> None:
    """No line is lost or torn."""
    screen = fresh(pipe)
    texts = [f"{number} {'x' * 20}\n" for number in range(4)]

    def print_all(text: str) -> None:
        for _ in range(200):
            screen.print(text, text)

    threads = [threading.Thread(target=print_all, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    screen.close()
    lines = pipe.read().removeprefix("\r\x1b[2A\x1b[J").splitlines(keepends=True)
    assert {text: lines.count(text) for text in texts} == dict.fromkeys(texts, 200)


def test_a_terminal_that_is_gone_is_no_error() -> None:
    """The run goes on without its view."""
    master, slave = pty.openpty()
    screen = Screen(slave, "utf-8")
    os.close(master)
    screen.draw([("one", 3)])
    assert screen.size() == (80, 24)
    os.close(slave)
