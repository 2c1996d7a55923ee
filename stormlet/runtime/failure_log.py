"""The log of failures: the first of each kind at once, the others as counts.

A component that fails on every tuple would otherwise write as many lines as there are tuples. Every single
failure is there at the level DEBUG (law B4).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from traceback import format_exception

from msgspec.structs import replace

from stormlet.core.outcomes import DeadLetter, Failure
from stormlet.core.retries import Restarts
from stormlet.core.shortened import cut, escaped, printable, shortened
from stormlet.core.tracebacks import forget_earlier_raises, is_file_of_ours, raised_in
from stormlet.errors import StateUnusable, StormletError, TaskKilled
from stormlet.model.plan import TaskPlan
from stormlet.report.failures import MOST_KINDS, FailureCounts, RepeatedFailure, log_fields

logger = logging.getLogger(__name__)

SHOWN_VALUES = 3
"""The number of values of a failed batch that a line shows."""
LONGEST_TRACEBACK = 8000
"""Characters of a traceback that are kept of each kind of failures."""
COUNTED_FOR = 10.0
"""Seconds from the first repetition of a failure until its count is logged."""

UNKNOWN = object()
"""The value of a message of a ``Spout`` class, which is known by its id alone."""


class FailureLog:
    """The failures of one run.

    ``message_id`` gives the message id of the first of some trees that is open, and None if none is. ``unanswered`` is
    called with failures for which no tuple answers.
    """

    def __init__(
        self,
        topology: str,
        loop: asyncio.AbstractEventLoop,
        message_id: Callable[[Iterable[int]], object],
        unanswered: Callable[[TaskPlan, RepeatedFailure], None] | None = None,
    ) -> None:
        self._topology = topology
        self._loop = loop
        self._message_id = message_id
        self._unanswered = unanswered
        self._counts = FailureCounts()
        self._timer: asyncio.TimerHandle | None = None

    def all(self) -> Sequence[RepeatedFailure]:
        """Every distinct failure; the one that happened last stands at the end."""
        return self._counts.all()

    def raised(
        self,
        plan: TaskPlan,
        method: str,
        error: BaseException,
        values: Sequence[object] = (),
        roots: Iterable[int] = (),
        *,
        settled: bool = False,
    ) -> None:
        """User code raised on these values, which belong to these trees, and were ``settled`` before or fail by it; on
        none, in a method that gets none."""
        # An exception that user code keeps and raises again has the frames of all its raises, ever more of them.
        forget_earlier_raises(error)
        failure = RepeatedFailure(
            plan.component,
            plan.name,
            method,
            type(error).__qualname__,
            shortened(error),
            place=_place(error),
            value=_shown(values),
            message_id=self._message_id(roots),
        )
        # The line names the method only where there is no value: with one it can only have been execute.
        where = f"{failure.task} raised" if values else f"{method} of {failure.task} raised"
        line = f"{where} {failure.error}{f' on {failure.value}' if values else ''}"
        self._log(logging.ERROR, plan.task, failure, line, error)
        # The failure of an unsettled input reaches the user by its tree; anything else would be in this log alone.
        if self._unanswered is not None and (settled or not values):
            self._unanswered(plan, failure)

    def failed(self, plan: TaskPlan, failure: Failure, message_id: object, value: object = UNKNOWN) -> None:
        """A message of this spout failed, and no exception was logged for it."""
        counted = _of_message("message", plan, failure, message_id, value)
        line = f"message {shortened(message_id)} of {plan.name} failed: {counted.error}{_and_value(counted)}"
        self._log(logging.WARNING, plan.task, counted, line)

    def held(self, plan: TaskPlan, method: str, seconds: float) -> None:
        """User code has held the event loop for so long."""
        error = f"held the event loop for {seconds:.2f} s"
        failure = RepeatedFailure(plan.component, plan.name, method, "held the event loop", error)
        line = (
            f"{plan.name} {error} in {method}: "
            f"await what takes long, or have a thread do it (a bolt: executor='thread')"
        )
        self._log(logging.WARNING, plan.task, failure, line)

    def restarts(self, plan: TaskPlan, error: Exception, pause: float, restarts: Restarts) -> None:
        """A task that died of this is restarted after so many seconds."""
        # The number of a restart says how near the task is to crashing its topology.
        if isinstance(error, TaskKilled):  # which no limit counts
            why, number = "was killed", ""
        else:
            count = restarts.within_window(self._loop.time())
            why, number = f"died of {shortened(error)}", f": restart {count}, of at most {restarts.policy}"
        logger.warning(
            "%s %s and is restarted in %g s%s",
            plan.name,
            why,
            pause,
            number,
            extra=log_fields(self._topology, plan.component, plan.task),
        )

    def given_up(self, plan: TaskPlan, letter: DeadLetter) -> None:
        """The sink of dead letters has this one, and with it all that is known of the message."""
        failure = _of_message("dead letter", plan, letter.failure, letter.message_id, letter.value)
        line = f"dead letter of {plan.name}: message {shortened(letter.message_id)}: {failure.error}"
        self._log(logging.ERROR, plan.task, failure, line)

    def lost(self, plan: TaskPlan, letter: DeadLetter) -> None:
        """A dead letter that nothing receives: its line is all that stays of it, so each has one (law S6)."""
        self._log_letter("", plan, letter)

    def _log_letter(self, note: str, plan: TaskPlan, letter: DeadLetter) -> None:
        logger.error(
            "dead letter of %s: %smessage %s, value %s, attempt %d: %s",
            plan.name,
            note,
            shortened(letter.message_id),
            shortened(letter.value),
            letter.attempts,
            cut(str(letter.failure)),
            extra=log_fields(self._topology, plan.component, plan.task, letter.message_id),
        )

    def unkept(self, plan: TaskPlan, letter: DeadLetter) -> None:
        """The topology ended before the sink had kept the letter, which must not be lost silently."""
        self._log_letter("not kept by its sink before the end: ", plan, letter)

    def close(self) -> None:
        """The run is over: log the counts that were not logged yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._log_counts()

    def _log(
        self,
        level: int,
        task: int,
        failure: RepeatedFailure,
        line: str,
        error: BaseException | None = None,
    ) -> None:
        # Before it is counted, as the line and its fields must name the kind that it is counted as.
        failure = self._counts.distinguished(failure)
        traceback = _traceback(error) if self._counts.is_new(failure) else ""  # which takes long to write
        first = self._counts.add(replace(failure, at=self._loop.time(), traceback=traceback))
        fields = log_fields(self._topology, failure.component, task, failure.message_id)
        # The repetitions are for those who have asked for DEBUG; all others get their number (law B4).
        shown = None if isinstance(error, StateUnusable) else error  # whose words say all
        logger.log(level if first else logging.DEBUG, "%s", line, exc_info=shown, extra=fields)
        if first and failure.is_of_other_kinds:
            logger.warning(
                "%s of %s has failed in %d different ways; further ones are counted together",
                failure.what,
                failure.component,
                MOST_KINDS,
                extra=fields,
            )
        # From the first repetition on, and not at fixed times: a run without failures has no timer.
        if not first and self._timer is None:
            self._timer = self._loop.call_later(COUNTED_FOR, self._log_counts)

    def _log_counts(self) -> None:
        self._timer = None
        # Without a task in the fields: the count is that of all tasks of the component.
        for failure, more in self._counts.take_unreported():
            logger.warning(
                "%s of %s again, %s more%s: %s%s",
                failure.what,
                printable(failure.component),
                f"{more:,}",
                " of other kinds, the last" if failure.is_of_other_kinds else "",
                failure.error,
                _and_value(failure),
                extra=log_fields(self._topology, failure.component, None, failure.message_id),
            )


def _of_message(
    what: str, plan: TaskPlan, failure: Failure, message_id: object, value: object
) -> RepeatedFailure:
    return RepeatedFailure(
        plan.component,
        plan.name,
        what,
        _kind(failure),
        cut(str(failure)),
        value="" if value is UNKNOWN else shortened(value),
        message_id=message_id,
    )


def _kind(failure: Failure) -> str:
    error = "" if failure.exception is None else f" {type(failure.exception).__qualname__}"
    # What one bolt raises by two types are two failures; a timeout is another one for each set of holders.
    return f"{failure.kind.name} {failure.component or ', '.join(failure.holders)}{error}"


def _and_value(failure: RepeatedFailure) -> str:
    return f"; value {failure.value}" if failure.value else ""


def _shown(values: Sequence[object]) -> str:
    shown = ", ".join(map(shortened, values[:SHOWN_VALUES]))
    return shown if len(values) <= SHOWN_VALUES else f"{shown} and {len(values) - SHOWN_VALUES} more"


def _traceback(error: BaseException | None) -> str:
    if error is None:
        return ""
    text = "".join(format_exception(error))
    return escaped(text[-LONGEST_TRACEBACK:].encode("utf-8", "backslashreplace").decode())


def _place(error: BaseException) -> str:
    """The line that raised."""
    # The last line of the user's, as stormlet's own frames below it say nothing to its author.
    call = raised_in(error)
    if call is None or (isinstance(error, StormletError) and is_file_of_ours(call.file)):
        return ""
    return f"{PurePath(call.file).name}:{call.line}"
