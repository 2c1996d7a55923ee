"""Text in a terminal's cells, of which a character may take two."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.text import Text

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
