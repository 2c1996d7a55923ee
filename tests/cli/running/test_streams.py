"""Standard output and standard error while a topology runs."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from stormlet.cli.running.screen import Screen
from stormlet.cli.running.streams import GuardedStream, are_one_terminal, guarded_streams


def write_text(output: GuardedStream, length: int) -> int:
    return output.write("x" * length)


def write_bytes(output: GuardedStream, length: int) -> int:
    return output.buffer.write(b"x" * length)


@pytest.mark.parametrize("write", [write_text, write_bytes])
@pytest.mark.parametrize("length", [1, 100_000])
def test_output_goes_on_to_nowhere_when_its_pipe_is_closed(
    write: Callable[[GuardedStream, int], int], length: int
) -> None:
    """The first write or flush that finds the pipe closed is told, and none raises, then or later."""
    told: list[str] = []
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        output = GuardedStream(stream)
        output.when_closed = lambda: told.append("closed")
        assert not output.closed_by_reader
        for _ in range(2):
            assert write(output, length) == length
            output.flush()
        assert output.fileno() == writing
    assert told == ["closed"]
    assert output.closed_by_reader


class Printed(Screen):
    """A screen that only remembers what is printed above it."""

    def __init__(self) -> None:
        super().__init__(-1, "utf-8")
        self.texts: list[str] = []

    def print(self, text: str, source: object = None) -> None:
        self.texts.append(text)


def test_everything_goes_above_a_screen_while_there_is_one() -> None:
    """Text, lines and bytes; before and after it they go to the stream itself."""
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    guarded = GuardedStream(stream)
    screen = Printed()
    guarded.write("before\n")
    guarded.print_above(screen)
    guarded.write("text\n")
    guarded.writelines(["a\n", "b\n"])
    guarded.buffer.write("ä\n".encode())
    guarded.buffer.flush()
    guarded.flush()
    guarded.print_above(None)
    guarded.buffer.write(b"after\n")
    assert screen.texts == ["text\n", "a\nb\n", "ä\n"]
    assert stream.buffer.getvalue() == b"before\nafter\n"


def test_a_character_may_come_in_several_writes() -> None:
    """Its bytes are put together above a screen, too, and also where the screen goes away between them."""
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    guarded = GuardedStream(stream)
    screen = Printed()
    guarded.print_above(screen)
    for byte in "ä\n€".encode()[:-1]:
        guarded.buffer.write(bytes([byte]))
    guarded.print_above(None)
    guarded.buffer.write("€".encode()[-1:])
    guarded.flush()
    assert "".join(screen.texts) == "ä\n"
    assert stream.buffer.getvalue() == "€".encode()


def close(stream: GuardedStream) -> None:
    stream.close()


def leave(stream: GuardedStream) -> None:
    with stream:
        pass


def wrap(stream: GuardedStream) -> None:
    io.TextIOWrapper(cast("BinaryIO", stream.buffer)).close()


def wrap_detached(stream: GuardedStream) -> None:
    io.TextIOWrapper(cast("BinaryIO", stream.detach())).close()


@pytest.mark.parametrize("closed_by", [close, leave, wrap, wrap_detached])
def test_user_code_cannot_close_it(closed_by: Callable[[GuardedStream], None]) -> None:
    """Somebody else may still write to it; what was written before goes out."""
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    guarded = GuardedStream(stream)
    guarded.write("before\n")
    closed_by(guarded)
    assert stream.buffer.getvalue() == b"before\n"
    guarded.write("after\n")
    guarded.flush()
    assert stream.buffer.getvalue() == b"before\nafter\n"


@pytest.mark.parametrize(
    ("written", "ended"), [(["a"], "a\n"), (["a\n"], "a\n"), (["a\n", ""], "a\n"), ([], "")]
)
def test_a_line_is_ended_where_it_was_not(written: list[str], ended: str) -> None:
    """What comes next stands on a line of its own."""
    stream = io.StringIO()
    guarded = GuardedStream(stream)
    for text in written:
        guarded.write(text)
    guarded.end_line()
    assert stream.getvalue() == ended


def test_a_line_of_bytes_is_ended_too() -> None:
    """Whoever has written it last."""
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    guarded = GuardedStream(stream)
    guarded.buffer.write(bytearray(b"a"))
    guarded.end_line()
    guarded.flush()
    assert stream.buffer.getvalue() == b"a\n"


def test_the_streams_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when one of them did not exist."""
    monkeypatch.setattr(sys, "stderr", None)
    before = sys.stdout
    with guarded_streams() as (output, errors):
        assert sys.stdout is output
        assert sys.stderr is errors is None
    assert sys.stdout is before
    assert sys.stderr is None


def test_files_are_no_terminal() -> None:
    """Nor is what has no file, or nothing at all."""
    with Path(os.devnull).open("w") as nowhere:
        assert not are_one_terminal(nowhere, nowhere)
    assert not are_one_terminal(io.StringIO(), io.StringIO())
    assert not are_one_terminal(None, sys.stderr)


def test_two_descriptors_may_be_one_terminal() -> None:
    """Whatever their numbers."""
    (master, slave), (other_master, other) = os.openpty(), os.openpty()
    with (
        os.fdopen(slave, "w") as one,
        os.fdopen(os.dup(slave), "w") as same,
        os.fdopen(other, "w") as another,
    ):
        assert are_one_terminal(one, same)
        assert not are_one_terminal(one, another)
    os.close(master)
    os.close(other_master)
