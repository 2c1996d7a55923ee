"""Standard output, as the commands write to it that run nothing, and texts that fit it.

It may have been closed before Python began, and its encoding may lack characters of the user's names; a command
says what it can all the same.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO, cast

from rich.cells import cell_len, set_cell_size
from rich.text import Text


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
    """True if it was closed before Python began."""
    return _output() is None


def send_nowhere(stream: TextIO) -> None:
    """Have the operating system drop what is written to the stream from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def encoding() -> str:
    """The encoding of standard output."""
    output = _output()
    return "utf-8" if output is None else output.encoding or "utf-8"


def can_show(text: str) -> bool:
    """True if the encoding has all characters of the text."""
    try:
        text.encode(encoding())
    except UnicodeEncodeError:
        return False
    return True


def _output() -> TextIO | None:
    return cast("TextIO | None", sys.stdout)


PLAIN = str.maketrans({"━": "#", "╸": "#", "─": "-", "…": "~", "µ": "u"})


def encodable(text: str, encoding: str) -> str:
    """The text without what the encoding has no characters for, and not wider."""
    if encoding.lower().startswith("utf"):
        return text
    return text.translate(PLAIN).encode(encoding, "replace").decode(encoding)


def fitted(text: str, width: int) -> str:
    """The text in at most so many cells, with an ellipsis where it was longer."""
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def bar(fraction: float, width: int, colour: str) -> Text:
    """A horizontal bar whose parts differ in shape, not in colour alone."""
    halves = round(fraction * width * 2)
    if 0 < fraction < 1:  # the first and the last bit show
        halves = min(max(halves, 1), width * 2 - 1)
    filled = "━" * (halves // 2) + "╸" * (halves % 2)
    return Text.assemble((filled, colour), ("─" * (width - len(filled)), "dim"))
