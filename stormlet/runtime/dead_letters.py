"""The sink of messages that were given up, and the file of letters (law S6)."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from inspect import isasyncgenfunction, isawaitable, isgeneratorfunction
from os import PathLike
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.core.shortened import shortened
from stormlet.errors import InvalidConfiguration, StormletError
from stormlet.model.plan import TaskPlan
from stormlet.report.letter_records import LetterRecord, read_record, record_of
from stormlet.runtime.failure_log import FailureLog


class LetterFile:
    """A file that letters are appended to.

    A letter is handed to the operating system before its message is released: it outlives the process, but not
    the machine. An ``fsync`` for each would hold the loop up for milliseconds; :meth:`sync` does one for all
    that were written before. The file is opened for each letter, so that it may be moved away at any time.
    """

    def __init__(self, path: Path) -> None:
        """Create the file if it is missing, and end a last line that a killed process left open. Raises
        :class:`OSError` if it cannot be written."""
        self._path = path.absolute()  # whatever becomes of the current directory
        with self._path.open("ab") as file:
            # A process that was killed while it wrote leaves half a line: the next letter must not continue it.
            if _is_open_ended(self._path):
                file.write(b"\n")

    def write(self, letter: DeadLetter) -> None:
        """Append one letter; raises :class:`~stormlet.errors.StormletError` naming the file."""
        self.append(record_of(letter, datetime.now(UTC)))

    def append(self, record: LetterRecord) -> None:
        """Append one record; raises :class:`~stormlet.errors.StormletError` naming the file."""
        self.append_line(msgspec.json.encode(record))

    def append_line(self, text: bytes) -> None:
        """Append one line as it is; raises :class:`~stormlet.errors.StormletError` naming the file."""
        try:
            with self._path.open("ab") as file:
                file.write(text + b"\n")
        except OSError as error:
            raise _not_written(self._path, error) from None

    def sync(self) -> None:
        """Have the device hold what was appended, against a loss of power. It blocks: call it from a thread.
        A file that was moved away meanwhile is not synced."""
        try:
            with self._path.open("ab") as file:
                # Of this descriptor and all others: what counts is the file, not who has written to it.
                os.fsync(file.fileno())
        except OSError as error:
            raise _not_written(self._path, error) from None


class Line(msgspec.Struct, frozen=True):
    """One line of a file of dead letters."""

    number: int
    """From 1."""
    text: bytes
    """Without the newline."""

    def record(self) -> LetterRecord:
        """Raises :class:`~stormlet.report.letter_records.NoLetter`."""
        return read_record(self.text)


def read_lines(path: Path, size: int | None = None) -> Iterator[Line]:
    """The lines of a file that are not blank, up to ``size`` bytes, as it may grow meanwhile. Raises
    :class:`OSError`."""
    with path.open("rb") as file:
        for number, text in enumerate(_up_to(size, file), 1):
            if text.strip():
                yield Line(number, text.rstrip(b"\r\n"))


def _up_to(size: int | None, file: BinaryIO) -> Iterator[bytes]:
    read = 0
    for line in file:
        read += len(line)
        # Only whole lines within the size: a line that is being written now is read the next time.
        if size is not None and read > size:
            return
        yield line


def _is_open_ended(path: Path) -> bool:
    """True if the last line lacks its newline; a pipe or device has no last line."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"


def _not_written(path: Path, error: OSError) -> StormletError:
    """An error of ours, as no line of the user's has to do with it."""
    return StormletError(f"{path} cannot be written: {error.strerror}")


KEPT = 1000
"""The number of recent dead letters kept in memory."""
KEPT_WHOLE = 10
"""The number of these that keep the frames of their exceptions, and with them the local variables of user code."""

DeadLetterSink: TypeAlias = Callable[[DeadLetter], Awaitable[None] | Future[None] | None]
"""Receives each dead letter; what it returns is awaited before the message is released, also the future of a thread."""

DeadLetterTarget: TypeAlias = DeadLetterSink | str | PathLike[str]
"""A sink, or the path of a JSONL file to append to: see :class:`~stormlet.runtime.dead_letters.LetterFile`."""


def _unchanged(sink: DeadLetterSink | None) -> DeadLetterSink | None:
    return sink


class DeadLetters:
    """All dead letters of one run."""

    def __init__(
        self,
        target: DeadLetterTarget | None,
        failures: FailureLog,
        replaced: Callable[[DeadLetterSink | None], DeadLetterSink | None] = _unchanged,
    ) -> None:
        self.last: deque[DeadLetter] = deque(maxlen=KEPT)
        """The last ones."""
        # Made at once, so that a path that cannot be written is refused before the topology starts.
        sink, sync = opened(target)
        self.sync: Callable[[], None] | None = sync
        """Has the device hold what the sink was given; None without a sink."""
        self._sink = replaced(sink)
        self._failures = failures

    def note(self, plan: TaskPlan, letter: DeadLetter) -> None:
        """The sink has it: keep it with the last ones, and log it."""
        self._keep(letter)
        # Without a sink the log line is all that remains, so that each letter needs one of its own (law S6).
        if self.sync is None:
            self._failures.lost(plan, letter)
        else:
            self._failures.given_up(plan, letter)

    def _keep(self, letter: DeadLetter) -> None:
        self.last.append(letter)
        if len(self.last) > KEPT_WHOLE:
            # Frames keep all local variables of user code alive, which for a thousand letters may be much.
            oldest_whole = -1 - KEPT_WHOLE
            self.last[oldest_whole] = self.last[oldest_whole].without_frames()

    def hand_over(self, letter: DeadLetter) -> Awaitable[None] | None:
        """Give it to the sink; an awaitable must be awaited before the message is released."""
        result: object = None if self._sink is None else self._sink(letter)
        if isinstance(result, Future):  # of a thread, as ``pool.submit`` returns it
            return asyncio.wrap_future(result)
        # What else a sink returns is ignored: list.append and the like are sinks, and so are functions that return
        # a count.
        return result if isawaitable(result) else None


def opened(target: DeadLetterTarget | None) -> tuple[DeadLetterSink | None, Callable[[], None] | None]:
    """Return the sink of a target, and the function that has the device hold what it was given; None where there is
    none. Raises :class:`~stormlet.errors.InvalidConfiguration` for a path that cannot be written, and for a function
    that yields, of which a call would do nothing."""
    if target is None:
        return None, None
    if callable(target):
        if _yields(target) or _yields(type(target).__call__):
            raise InvalidConfiguration(
                f"dead_letters={shortened(target)} yields, so that nothing of it would run; let it return when it has "
                f"the letter"
            )
        return target, _nothing  # what it has returned from is its own affair
    if not isinstance(cast("object", target), str | PathLike):
        raise InvalidConfiguration(f"dead_letters={target!r} is neither a callable nor the path of a file")
    try:
        file = LetterFile(Path(target))
    except OSError as error:
        raise InvalidConfiguration(f"dead_letters={str(target)!r} cannot be written: {error}") from error
    return file.write, file.sync


def _yields(function: object) -> bool:
    return isgeneratorfunction(function) or isasyncgenfunction(function)


def _nothing() -> None:
    """Nothing is left to do."""
