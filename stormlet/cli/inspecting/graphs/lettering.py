"""How much room text takes in a drawing, and how it is made to take less."""

from __future__ import annotations

from rich.cells import cell_len

from stormlet.core.shortened import printable


def shortened(text: str, length: int) -> str:
    """The text without its middle, if it is longer."""
    text = printable(text)
    return text if len(text) <= length else f"{text[: length - length // 2 - 1]}…{text[-(length // 2) :]}"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """About how wide a text is, in pixels, whatever sans serif font it is drawn in; rather more than less."""
    narrow, wide = "iljtfrI.,:;'|()[]! ", "mwMWABCDGHKNOQRUVXYZ@%_"
    widths = {**dict.fromkeys(narrow, 0.38), **dict.fromkeys(wide, 0.84)}
    ems = sum(widths.get(each, 0.63) if cell_len(each) < 2 else 1.05 for each in text)
    return ems * size * (1.12 if bold else 1.0)
