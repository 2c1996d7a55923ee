"""Values as log lines, tables, files and messages show them: never an exception, whatever the value is."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import Repr
from textwrap import indent
from typing import Final

LONGEST: Final = 200
"""Characters of a shortened value."""
MARGIN: Final = "    "
"""Indent of the further lines of one text."""


def _limits() -> Repr:
    # By reprlib, as the repr of a list of a million items takes long to make before it can be cut.
    limits = Repr()
    limits.maxstring = limits.maxother = LONGEST
    limits.maxlong = 50
    limits.maxlist = limits.maxtuple = limits.maxdict = limits.maxset = limits.maxfrozenset = 20
    return limits


_LIMITS: Final = _limits()


def shown(value: object) -> str:
    """Return the ``repr`` in characters that every file can hold, or a text in its place where ``repr`` fails."""
    try:
        text = str.__str__(repr(value))  # it may be of a class of its own
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    # A lone surrogate is legal text, and no file in UTF-8 can hold it.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def text_of(words: object) -> str:
    """Return the ``str`` in characters that every file can hold, or the ``repr`` where ``str`` fails."""
    try:
        return str(words).encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception:
        return shown(words)


def shortened(value: object) -> str:
    """Return the ``repr`` of a value, without its middle where it is longer than 200 characters."""
    try:
        return cut(_LIMITS.repr(value))
    except Exception:  # reprlib goes by the names of classes, and an int may have too many digits
        return cut(shown(value))


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text on one line, without its middle where it is longer than ``longest`` characters."""
    # Cut before it is escaped too, as escaping megabytes takes time.
    text = printable(text if len(text) <= 2 * longest else text[:longest] + text[-longest:])
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2  # three dots stand between
    return f"{text[:half]}...{text[-half:]}"


def printable(text: str) -> str:
    """Return a text on one line: characters that begin a line or move a terminal's cursor are escaped as in Python."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def escaped(text: str) -> str:
    """Return a text with its lines and tabs; other characters that move a terminal's cursor are escaped as in
    Python."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def counted(number: int, noun: str, plural: str = "", show: Callable[[int], str] = "{:,}".format) -> str:
    """Return ``1 task``, ``1,200 tasks``; ``plural`` is for a noun that has no s there, ``show`` for another number."""
    return f"{show(number)} {noun if number == 1 else plural or f'{noun}s'}"


def visible(text: str) -> str:
    """Return a text, escaped and with its further lines indented, so that none of them can be taken for a line of the
    log, or of the command's own output."""
    first, *others = escaped(text).split("\n")
    rest = "\n".join(others)
    # A text that was made visible before stays as it is.
    is_indented = all(not line or line.startswith((" ", "\t")) for line in others)
    return "\n".join((first, *([rest if is_indented else indent(rest, MARGIN)] if others else ())))
