"""A formatter that escapes foreign text in log lines and tracebacks.

Values and ids are escaped where a line of the log is made. A traceback also has the text of the exception itself, which
may come from anywhere: from a broker, a web service, a file.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from itertools import chain
from textwrap import indent
from traceback import TracebackException
from types import TracebackType
from typing import Any, TypeAlias

from stormlet.core.shortened import MARGIN, escaped, printable, visible

ExceptionInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class LogFormatter(logging.Formatter):
    """A formatter for logs that people read on a terminal: control characters of messages and of exceptions are
    escaped, and their further lines are indented, so that none of them can be taken for a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the record as text, without its traceback."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802
        """Return the traceback as text, without the newline at its end."""
        return "" if ei[1] is None else text_of(trace_of(ei[1])).rstrip("\n")


def trace_of(error: BaseException) -> TracebackException:
    """Return the traceback of an exception and of its causes, with the text of each in visible characters."""
    trace = _Visible.from_exception(error)
    others = list(_others(trace))
    while others:
        other = others.pop()
        other.__class__ = _Visible
        others += _others(other)
    return trace


def text_of(trace: TracebackException) -> str:
    """Return the text that Python prints for it, with a newline at its end."""
    return escaped("".join(trace.format()))


def _others(trace: TracebackException) -> Iterator[TracebackException]:
    """Return the cause, the context, and the members of a group."""
    found = chain((trace.__cause__, trace.__context__), trace.exceptions or ())
    return (each for each in found if each is not None)


class _Visible(TracebackException):
    """One exception. The lines about its frames are the author's own, those about itself are not."""

    def format_exception_only(self, **options: Any) -> Generator[str, None, None]:
        is_named = False
        for part in super().format_exception_only(**options):
            text = part.removesuffix("\n")
            if is_named:  # a note
                yield f"{indent(escaped(text), MARGIN)}\n"
            elif text.startswith(" "):  # the place of a syntax error
                yield f"{printable(text)}\n"
            else:
                is_named = True
                yield f"{visible(text)}\n"
