"""Text in a terminal's cells."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from stormlet.cli.fitting import bar, encodable, fitted


def test_a_bar_tells_something_from_nothing_without_colour() -> None:
    """The smallest part shows, and the whole is only full when it is."""
    assert [bar(each, 4, "green").plain for each in (0, 0.001, 0.5, 0.99, 1)] == [
        "────",
        "╸───",
        "━━──",
        "━━━╸",
        "━━━━",
    ]


@pytest.mark.parametrize(
    ("text", "shown"), [("abc", "abc"), ("abcd", "ab…"), ("長長", "長…"), ("x" * 9, "xx…")]
)
def test_a_text_is_fitted(text: str, shown: str) -> None:
    """To three cells."""
    assert fitted(text, 3) == shown
    assert cell_len(fitted(text, 3)) <= 3


@pytest.mark.parametrize(
    ("encoding", "shown"), [("utf-8", "━─ 5 µs é…"), ("ascii", "#- 5 us ?~"), ("latin-1", "#- 5 us é~")]
)
def test_what_an_encoding_lacks_is_replaced_cell_by_cell(encoding: str, shown: str) -> None:
    """So that columns stay aligned, and lines are no wider than the terminal."""
    assert encodable("━─ 5 µs é…", encoding) == shown
