"""Standard output, as the commands write to it that run nothing.

It may have been closed before Python began, and its encoding may lack characters of the user's names; a command
says what it can all the same.
"""

from __future__ import annotations

import sys
from typing import TextIO, cast


def write_text(text: str) -> None:
    """For people: characters that the encoding lacks are escaped."""
    output = _output()
    if output is not None:
        output.write(text.encode(encoding(), "backslashreplace").decode(encoding()))


def write_utf8(text: str) -> None:
    """For programs: UTF-8, whatever the terminal's encoding."""
    output = _output()
    if output is not None:
        output.buffer.write(text.encode())


def is_closed() -> bool:
    """Whether it was before Python began."""
    return _output() is None


def encoding() -> str:
    """The encoding of standard output."""
    output = _output()
    return "utf-8" if output is None else output.encoding or "utf-8"


def can_show(text: str) -> bool:
    """Whether the encoding has all characters of the text."""
    try:
        text.encode(encoding())
    except UnicodeEncodeError:
        return False
    return True


def _output() -> TextIO | None:
    return cast("TextIO | None", sys.stdout)
