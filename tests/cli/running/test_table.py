"""The table of components."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.text import Text

from stormlet.cli.running.table import closing_table, live_table
from tests.cli.figures import BOLT, SPOUT, bolt


def plain(lines: list[Text]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def test_it_is_aligned_at_80_columns() -> None:
    """Names to the left, figures to the right; a spout executes nothing, and its queue are its pending messages."""
    assert plain(live_table([SPOUT, BOLT], 80)) == [
        "component  executed   per s   acked  failed        queue  latency",
        "lines                 1,000  11.3 k       0  ━━━━  1,000  19.3 ms",
        "split        12.3 k   1,000  12.3 k       1  ━───    512  6.80 µs",
    ]


def test_at_40_columns_the_least_needed_columns_are_left_out() -> None:
    """What stays is what tells that something is wrong."""
    assert plain(live_table([SPOUT, BOLT], 40)) == [
        "component   per s  failed        queue",
        "lines       1,000       0  ━━━━  1,000",
        "split       1,000       1  ━───    512",
    ]


@pytest.mark.parametrize("width", range(1, 100))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Whatever the width and however wide the characters of a name."""
    rows = [SPOUT, bolt("a-name-that-is-longer-than-any-column-should-be"), bolt("長い名前の部品" * 4)]
    for lines in (live_table(rows, width), closing_table(rows, width)):
        assert len({line.cell_len for line in lines}) == 1
        assert lines[0].cell_len <= max(width, 1)


def test_long_names_end_in_an_ellipsis() -> None:
    """In cells, not in characters: wide ones count twice."""
    shown = plain(live_table([bolt("長い名前の部品" * 4), bolt("x" * 40)], 40))
    assert shown[1].startswith("長い名前の… ")
    assert shown[2].startswith("xxxxxxxxxx… ")


def test_the_closing_table_is_exact() -> None:
    """In full where there is room for that, in short figures where there is not."""
    rows = [replace(SPOUT, acked=1_234_567), BOLT]
    assert plain(closing_table(rows, None))[1] == (
        "lines       12,340            1,234,567       0   1,000  19.3 ms"
    )
    assert plain(closing_table(rows, 40))[1] == "lines                1.23 M       0"


def test_failures_stand_out() -> None:
    """A count of failures is red only where there are some."""
    _, fine, failing = live_table([replace(BOLT, failed=0), BOLT], 80)
    assert "red" not in str(fine.spans)
    assert "bold red" in str(failing.spans)


def test_names_cannot_move_the_cursor() -> None:
    """Control characters are shown as Python escapes them."""
    assert plain(live_table([bolt("a\nb")], 80))[1].startswith("a\\nb ")
