"""Values as log lines, tables, files and messages show them: never an exception, whatever the value is."""

from __future__ import annotations

from reprlib import Repr
from textwrap import indent
from typing import Final

LONGEST: Final = 200
"""Characters."""
MARGIN: Final = "    "


def _limits() -> Repr:
    limits = Repr()
    limits.maxstring = limits.maxother = LONGEST
    limits.maxlong = 50
    limits.maxlist = limits.maxtuple = limits.maxdict = limits.maxset = limits.maxfrozenset = 20
    return limits


_LIMITS: Final = _limits()


def shown(value: object) -> str:
    """``repr``, in characters that every file can hold, also where ``repr`` itself fails."""
    try:
        text = str.__str__(repr(value))  # it may be of a class of its own
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def text_of(words: object) -> str:
    """``str``, in characters that every file can hold, also where ``str`` itself fails."""
    try:
        return str(words).encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception:
        return shown(words)


def shortened(value: object) -> str:
    """The ``repr`` of a value, its middle left out where it is longer than 200 characters."""
    try:
        return cut(_LIMITS.repr(value))
    except Exception:  # it goes by the names of classes, and an int may have too many digits
        return cut(shown(value))


def cut(text: str, longest: int = LONGEST) -> str:
    """A text on one line, its middle left out where it is longer than 200 characters, or so many."""
    text = printable(text if len(text) <= 2 * longest else text[:longest] + text[-longest:])
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def printable(text: str) -> str:
    """The text on one line: what would begin another one, or move a terminal's cursor, is written as Python escapes
    it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def escaped(text: str) -> str:
    """The text in its lines: what else would move a terminal's cursor, tabs apart, is written as Python escapes it."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def visible(text: str) -> str:
    """The text, escaped, with its further lines indented: none of them can be taken for a line of the log, or of the
    command's own."""
    first, *others = escaped(text).split("\n")
    rest = "\n".join(others)
    is_indented = all(not line or line.startswith((" ", "\t")) for line in others)
    return "\n".join((first, *([rest if is_indented else indent(rest, MARGIN)] if others else ())))
