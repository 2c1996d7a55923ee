"""Tracebacks in which the text of an exception can do nothing but be read."""

from __future__ import annotations

import logging
import sys

import pytest

from stormlet import LogFormatter, Topology
from tests.helpers import run_to_end

EVIL = "\x1b]0;pwned\x07\x1b[2J..\r\nFAKE LOG LINE"
SHOWN = "\\x1b]0;pwned\\x07\\x1b[2J..\\r\n    FAKE LOG LINE"


def with_note(error: BaseException) -> BaseException:
    """The same with a note."""
    error.add_note(EVIL)
    return error


def caused(error: BaseException, cause: BaseException) -> BaseException:
    """The same with a cause."""
    error.__cause__ = cause
    return error


def meanwhile(error: BaseException, context: BaseException) -> BaseException:
    """The same, raised while another one was handled."""
    error.__context__ = context
    return error


def lines_of(error: BaseException) -> list[str]:
    """The log of a record with this exception."""
    record = logging.LogRecord("flow", logging.ERROR, "", 0, "failed", None, (type(error), error, None))
    return LogFormatter("%(levelname)s %(message)s").format(record).split("\n")


@pytest.mark.parametrize(
    "error",
    [
        ValueError(EVIL),
        KeyError(EVIL),
        with_note(ValueError("a")),
        caused(ValueError("a"), ValueError(EVIL)),
        meanwhile(ValueError("a"), with_note(ValueError("b"))),
        ExceptionGroup(EVIL, [ValueError(EVIL), ExceptionGroup("b", [with_note(OSError(EVIL))])]),
        SyntaxError(EVIL, (EVIL, 1, 1, EVIL)),
        type(EVIL, (Exception,), {})("a"),
    ],
    ids=["text", "repr", "note", "cause", "context", "group", "syntax error", "name"],
)
def test_whatever_an_exception_says_is_visible(error: BaseException) -> None:
    """No character of it moves a cursor, and no line of it begins where those of the log do."""
    lines = lines_of(error)
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("FAKE") for line in lines)
    assert "\\x1b" in "\n".join(lines)


def test_an_exception_of_several_lines_stays_readable() -> None:
    """Line by line, indented below its name; a traceback is what Python makes of it otherwise."""
    assert lines_of(ValueError(EVIL)) == ["ERROR failed", *f"ValueError: {SHOWN}".split("\n")]
    plain = caused(with_note(ValueError("a")), ExceptionGroup("b", [OSError("c")]))
    plain.__notes__ = ["one line"]
    record = (type(plain), plain, None)
    python = logging.Formatter().formatException(record)
    assert LogFormatter().formatException(record) == python.replace("one line", "    one line")


def test_a_message_of_several_lines_has_one_record() -> None:
    """Whoever has put foreign text into it."""
    record = logging.LogRecord("flow", logging.ERROR, "", 0, "got %s", (EVIL,), None)
    assert LogFormatter("%(levelname)s %(message)s").format(record) == f"ERROR got {SHOWN}"


def test_nothing_raised_is_nothing_said() -> None:
    """As after ``logger.exception`` where nothing was raised."""
    assert LogFormatter().formatException(sys.exc_info()) == ""


@pytest.mark.simulated_time
async def test_a_component_may_have_any_id(caplog: pytest.LogCaptureFixture) -> None:
    """In messages it is on one line."""

    def fail(value: int) -> None:
        raise ValueError(value)

    topology = Topology("evil", max_attempts=2)
    topology.bolt(EVIL, fail, topology.spout("s", range(2)).shuffle())
    running = await run_to_end(topology)
    assert all(record.getMessage().isprintable() for record in caplog.records)
    assert [each.component for each in running.failures()] == [EVIL]
