"""Standard output, standard error and the log while the command line runs a topology."""

from __future__ import annotations

import logging
import os
import sys
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from errno import EIO
from pathlib import Path
from typing import BinaryIO, Literal, Self, TextIO, cast

from stormlet.cli.errors import RunFormatter
from stormlet.cli.output import send_nowhere
from stormlet.cli.running.screen import Screen


class GuardedStream:
    """A text stream that goes on to nowhere when its reader is gone, and above a screen's frame while there is
    one."""

    def __init__(self, stream: TextIO) -> None:
        self.closed_by_reader = False
        self.closing_reported = False
        """True once the user knows of that."""
        self.when_closed: Callable[[], object] = _nothing
        """Called once, when its reader is found to be gone."""
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._screen: Screen | None = None
        self._last = "\n"
        self._decoder = _decoder()

    def print_above(self, screen: Screen | None) -> None:
        """Have what is written from now on printed above the frame of this screen; None: as before."""
        self.flush()
        begun, _ = self._decoder.getstate()  # of a character whose rest is to come
        self._screen = screen
        self._decoder = _decoder()
        if begun:
            self.write_bytes(begun)

    def end_line(self) -> None:
        """Begin a new line, if the last one was not ended."""
        if not self._last.endswith("\n"):
            self.write("\n")

    def write(self, text: str) -> int:
        """As a text stream does."""
        if text:
            self._last = text
        if self._screen is not None:
            self._screen.print(text, self)
            return len(text)
        try:
            return self._stream.write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As a text stream does."""
        self.write("".join(lines))

    def flush(self) -> None:
        """As a text stream does."""
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    @property
    def buffer(self) -> _Bytes:
        """Takes bytes, as that of a text stream does."""
        return _Bytes(self, self._stream.buffer)

    def write_bytes(self, data: bytes) -> None:
        """As ``buffer`` does."""
        if self._screen is not None:
            self.write(self._decoder.decode(data))
            return
        self._last = data[-1:].decode("latin-1") or self._last
        try:
            self._stream.buffer.write(data)
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Only flush: the summary is still to come, and the stream is not the closer's own."""
        self.flush()

    def detach(self) -> _Bytes:
        """``buffer``, for another text stream that is put around it."""
        return self.buffer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def _give_up(self, error: OSError) -> None:
        """Go on to nowhere; raises an error that is not of a reader who is gone."""
        is_hung_up = self._is_terminal and error.errno == EIO
        if not is_hung_up and not isinstance(error, BrokenPipeError):
            raise error
        send_nowhere(self._stream)
        if not is_hung_up:  # which a signal reports
            self.closed_by_reader = True
            self.when_closed()


class _Bytes:
    def __init__(self, guarded: GuardedStream, buffer: BinaryIO) -> None:
        self._guarded = guarded
        self._buffer = buffer

    def write(self, data: bytes) -> int:
        written = bytes(data)  # it may be a bytearray or a view
        self._guarded.write_bytes(written)
        return len(written)

    def flush(self) -> None:
        self._guarded.flush()

    def close(self) -> None:  # which a text stream around it does at its own end
        self._guarded.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._buffer, name)


@contextmanager
def guarded_streams() -> Generator[tuple[GuardedStream | None, GuardedStream | None]]:
    """Standard output and error with a guard before them; None for one that was closed before Python began.

    To be entered before the user's code is loaded, so that what keeps a stream from then on keeps a guarded
    one.
    """
    before = cast("TextIO | None", sys.stdout), cast("TextIO | None", sys.stderr)
    output, errors = (None if each is None else GuardedStream(each) for each in before)
    sys.stdout, sys.stderr = cast("TextIO", output), cast("TextIO", errors)
    try:
        yield output, errors
    finally:
        for each in (output, errors):
            if each is not None:
                each.print_above(None)
        sys.stdout, sys.stderr = cast("TextIO", before[0]), cast("TextIO", before[1])


def are_one_terminal(one: TextIO | None, other: TextIO | None) -> bool:
    """True if both are the same terminal."""
    try:
        return one is not None and other is not None and _terminal(one) == _terminal(other)
    except (OSError, ValueError):  # no terminal, or no file at all
        return False


def _terminal(stream: TextIO) -> int:
    if not stream.isatty():
        raise ValueError("no terminal")
    return os.fstat(stream.fileno()).st_rdev


def _decoder() -> IncrementalDecoder:
    return getincrementaldecoder("utf-8")("replace")


def _nothing() -> None:
    """The default of ``when_closed``."""


LogLevel = Literal["debug", "info", "warning", "error"]

ENGINE = str(Path(__file__).parents[2] / "runtime")


@contextmanager
def logging_to_standard_error(level: LogLevel | None, *, quiet: bool) -> Generator[None]:
    """Unless the user's file has set logging up. A ``level`` that was asked for holds in any case; the
    default is warnings, errors if ``quiet``."""
    root = logging.getLogger()
    before = root.level
    wanted = level or ("error" if quiet else None)
    if wanted is not None:
        root.setLevel(wanted.upper())
    handler = logging.StreamHandler()
    handler.setFormatter(RunFormatter("%(levelname)s %(name)s: %(message)s"))
    ours = [] if root.handlers else [handler]
    for each in ours:
        root.addHandler(each)
    logging.getLogger("asyncio").addFilter(is_not_ours)
    try:
        yield
    finally:
        logging.getLogger("asyncio").removeFilter(is_not_ours)
        for each in ours:
            root.removeHandler(each)
        root.setLevel(before)


def is_not_ours(record: logging.LogRecord) -> bool:
    """False for a record of asyncio about code that held the loop, if that is the engine's: in debug mode the engine
    names the component itself."""
    slow = str(record.msg).startswith("Executing ") and isinstance(record.args, tuple)
    return not (slow and ENGINE in str(record.args))
