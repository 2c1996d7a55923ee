"""Where messages go that were given up (law S6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from os import PathLike
from pathlib import Path
from typing import TypeAlias, cast

from stormlet.core.outcomes import DeadLetter
from stormlet.core.plan import TaskPlan
from stormlet.errors import InvalidConfiguration
from stormlet.runtime.failure_log import FailureLog
from stormlet.runtime.letter_files import LetterFile
from stormlet.runtime.parts import Parts

KEPT = 1000
"""How many of the last dead letters are kept in memory."""
KEPT_WHOLE = 10
"""How many of these keep the frames of what was raised, and with them the local variables of user code."""

DeadLetterSink: TypeAlias = Callable[[DeadLetter], Awaitable[None] | None]
"""Receives each dead letter; it is awaited before the message is released."""

DeadLetterTarget: TypeAlias = DeadLetterSink | str | PathLike[str]
"""A sink, or the path of a JSONL file to append to: see :class:`~stormlet.runtime.letter_files.LetterFile`."""


class DeadLetters:
    """All dead letters of one run."""

    def __init__(self, target: DeadLetterTarget | None, failures: FailureLog, parts: Parts) -> None:
        self.last: deque[DeadLetter] = deque(maxlen=KEPT)
        """The last ones."""
        self.sync: Callable[[], None] | None = None
        """Has the device hold what the sink was given; None without a sink."""
        self._sink = parts.dead_letters(self._sink_of(target))
        self._failures = failures

    def note(self, plan: TaskPlan, letter: DeadLetter) -> None:
        """The sink has it: keep it with the last ones, and log it."""
        self._keep(letter)
        if self.sync is None:
            self._failures.lost(plan, letter)
        else:
            self._failures.buried(plan, letter)

    def _keep(self, letter: DeadLetter) -> None:
        self.last.append(letter)
        if len(self.last) > KEPT_WHOLE:
            oldest_whole = -1 - KEPT_WHOLE
            self.last[oldest_whole] = self.last[oldest_whole].without_frames()

    def hand_over(self, letter: DeadLetter) -> Awaitable[None] | None:
        """Give it to the sink; an awaitable must be awaited before the message is released."""
        result = None if self._sink is None else self._sink(letter)
        return result if isawaitable(result) else None

    def _sink_of(self, target: DeadLetterTarget | None) -> DeadLetterSink | None:
        if target is None:
            return None
        if callable(target):
            self.sync = _nothing  # what it has returned from is its own affair
            return target
        if not isinstance(cast("object", target), str | PathLike):
            raise InvalidConfiguration(
                f"dead_letters={target!r} is neither a callable nor the path of a file"
            )
        try:
            file = LetterFile(Path(target))
        except OSError as error:
            raise InvalidConfiguration(f"dead_letters={str(target)!r} cannot be written: {error}") from error
        self.sync = file.sync
        return file.write


def _nothing() -> None:
    """Nothing is left to do."""
