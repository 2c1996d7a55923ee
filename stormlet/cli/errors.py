"""Errors as the command line reports them: in the user's terms, and by the user's own frames."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
from itertools import chain
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException

import cyclopts

from stormlet.core.shortened import cut, escaped, visible
from stormlet.core.tracebacks import is_file_of_ours
from stormlet.errors import (
    InvalidTopology,
    Reject,
    StateUnusable,
    StormletError,
    TargetError,
    TopologyCrashed,
)
from stormlet.log_formatter import ExceptionInfo, LogFormatter, text_of, trace_of

_THE_WAY_THERE = (asyncio, concurrent.futures, cyclopts, importlib)
_MACHINERY = (
    *(str(Path(str(module.__file__)).parent) for module in _THE_WAY_THERE),
    str(contextlib.__file__),
    "uvloop/",
    "<frozen ",
)
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130
"""Exit codes; 0 is done."""
LONGEST_LINE = 2000
"""Characters of a message."""
_UNCOMPILABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of a file that is no Python: ValueErrors are those of its encoding."""


def explain(error: StormletError) -> str:
    """One message: what is wrong, and where in the user's code; under the traceback of an exception of
    theirs."""
    message = f"stormlet: {as_shown(str(error), lines=not isinstance(error, TopologyCrashed))}"
    if isinstance(error, TargetError | TopologyCrashed) and error.__cause__ is not None:
        return f"{_traceback(error.__cause__)}{message}"
    place = _users(TracebackException.from_exception(error).stack)[-1:]
    return "\n".join(
        (message, *(escaped(line.rstrip("\n")) for line in StackSummary.from_list(place).format()))
    )


def exit_code(error: StormletError) -> int:
    """The exit code of a command that ends with this error. A state that can be used no more while a run goes on is the
    cause of a crash, and comes here as one."""
    is_usage = isinstance(error, TargetError | InvalidTopology | StateUnusable)
    return WRONG_USAGE if is_usage else FAILED


def as_shown(message: str, *, lines: bool = True) -> str:
    """The message as it may stand on a terminal, on one line or in its own ``lines``, none of which is endless."""
    return visible(
        "\n".join(cut(line, LONGEST_LINE) for line in (message.split("\n") if lines else [message]))
    )


class RunFormatter(LogFormatter):
    """Shows exceptions by the user's own frames, too."""

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802
        """The traceback, without the newline at its end."""
        return "" if ei[1] is None else _traceback(ei[1]).rstrip()


def _traceback(error: BaseException) -> str:
    """With a newline at its end; empty where the message of the error says it all."""
    trace = trace_of(error)
    if isinstance(error, _UNCOMPILABLE) and _failed_to_compile(trace):
        return "".join((*trace.format_exception_only(), "\n"))  # it says itself where it is
    has_cause = error.__cause__ is not None and not isinstance(error, StateUnusable)  # whose words have it
    if not has_cause and (isinstance(error, Reject) or _is_ours(error, trace)):
        return ""
    _trim(trace)
    return f"{text_of(trace)}\n"


def _failed_to_compile(trace: TracebackException) -> bool:
    stack = trace.stack  # empty for one that was never raised
    return bool(stack) and not _users(stack) and not is_file_of_ours(stack[-1].filename)


def _is_ours(error: BaseException, trace: TracebackException) -> bool:
    """True if it is an error of stormlet's that no line of the user's raised."""
    return isinstance(error, StormletError) and not _users(trace.stack)


def _trim(trace: TracebackException) -> None:
    """Leave out what is stormlet's, here and in everything this exception came from. Where none of it has a frame of
    the user's, ours stay: the fault may be stormlet's then."""
    # In a loop, as user code may link more exceptions than Python has room for calls.
    everything = [trace]
    for each in everything:
        # What was raised while stormlet cancelled a task means nothing to a user.
        if each.__context__ is not None and not _users(each.__context__.stack):
            each.__context__ = None
        everything.extend(_origins(each))
    has_users = dict[int, bool]()
    for each in reversed(everything):  # what it came from is looked at before
        users = _users(each.stack)
        has_users[id(each)] = bool(users) or any(has_users[id(other)] for other in _origins(each))
        if has_users[id(each)]:
            each.stack = StackSummary.from_list(users)


def _origins(trace: TracebackException) -> list[TracebackException]:
    origins = chain((trace.__cause__, trace.__context__), trace.exceptions or ())
    return [each for each in origins if each is not None]


def _users(stack: StackSummary) -> list[FrameSummary]:
    """The frames of the user's code and of what it called, without stormlet's and those of what led there."""
    return [frame for frame in stack if not _is_machinery(frame.filename)]


def _is_machinery(file: str) -> bool:
    return file.startswith(_MACHINERY) or is_file_of_ours(file)
