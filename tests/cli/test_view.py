"""What is shown of a run while it lasts, and at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from stormlet.cli.running.meter import Frame, Progress, Report
from stormlet.cli.running.view import closing_summary, live_view, repeated
from stormlet.report.failures import RepeatedFailure
from tests.cli.figures import BOLT, FAILURE, FRAME, SPOUT, bolt, frame_of


def shown(
    frame: Frame, failures: Sequence[RepeatedFailure] = (), drain: str = "", width: int = 80, height: int = 24
) -> list[str]:
    return [line.plain.rstrip() for line in live_view(frame, failures, drain, width, height)]


def test_the_view_has_title_table_progress_drain_and_the_last_failure() -> None:
    """In this order, one line each, below an empty one."""
    frame = replace(FRAME, progress=Progress(250, 1000, 37.2), dead_letters=2)
    lines = shown(frame, [FAILURE], "draining for 3.1 s: waits for lines: 1,000 pending")
    assert lines == [
        "",
        "word-count   12.4 s   2 dead letters   1,000 tuples/s   1,000 pending",
        "component  executed   per s   acked  failed        queue  latency",
        "lines                 1,000  11.3 k       0  ━━━━  1,000  19.3 ms",
        "split        12.3 k   1,000  12.3 k       1  ━───    512  6.80 µs",
        "━━━━━━━╸──────────────────────  25%  250 of 1,000  37 s left",
        "draining for 3.1 s: waits for lines: 1,000 pending",
        "341 times split[1]: ValueError('not a line') at flow.py:12 on '\\x00'",
    ]


def test_what_does_not_fit_into_the_title_is_left_out_whole() -> None:
    """A figure that is cut off would be another figure."""
    assert shown(FRAME, width=40, height=10)[0] == "word-count   12.4 s   1,000 tuples/s"
    assert shown(FRAME, width=16, height=10)[0] == "word-count"


@pytest.mark.parametrize("height", range(1, 30))
@pytest.mark.parametrize("width", [1, 9, 20, 40, 80, 200])
def test_it_always_fits(width: int, height: int) -> None:
    """No line is wider and no view higher than the terminal, however many components there are."""
    frame = replace(
        frame_of(SPOUT, *(bolt(f"bolt {number} 長い") for number in range(40))), progress=Progress(1, 3, 2.0)
    )
    lines = live_view(frame, [FAILURE], "draining for 3.1 s: waits for lines", width, height)
    assert len(lines) <= height
    assert all(line.cell_len <= max(width, 10) for line in lines)


def test_of_many_components_those_that_do_most_are_shown() -> None:
    """In their own order, with those whose queue is full before all others, and with how many are not shown."""
    rows = [bolt(f"bolt{number}", per_second=2**number) for number in range(8)]
    rows[2] = bolt("stuck", per_second=0, waiting=2_048)
    lines = shown(frame_of(*rows), height=7)
    assert [line.split()[0] for line in lines[2:]] == ["stuck", "bolt5", "bolt6", "bolt7", "and"]
    assert lines[-1] == "and 4 that do less"


def test_components_that_do_about_as_much_do_not_take_turns() -> None:
    """The first ones stay."""
    rows = [bolt(f"bolt{number}", per_second=1000 - number % 3) for number in range(8)]
    lines = shown(frame_of(*rows), height=5)
    assert [line.split()[0] for line in lines[2:]] == ["bolt0", "bolt1", "and"]


READ = Report("flights", 67_355, 336_776, "rows read")
WRITTEN = Report("write", 202, None, "rows written")


def test_what_components_report_has_a_line_each() -> None:
    """How much of how much, where that is known; at the end exactly."""
    assert shown(replace(FRAME, reports=(READ, WRITTEN)), height=10)[-2:] == [
        "flights: 67.4 k of 337 k rows read, 20%",
        "write: 202 rows written",
    ]
    done = replace(FRAME, reports=(replace(READ, done=336_776), WRITTEN))
    assert [line.plain for line in closing_summary(done, [], None)][4:6] == [
        "flights: 336,776 of 336,776 rows read",
        "write: 202 rows written",
    ]


def test_reports_leave_room_for_the_table() -> None:
    """However many there are, a few are shown."""
    lines = shown(replace(FRAME, reports=(WRITTEN,) * 20), height=10)
    assert lines.count("write: 202 rows written") == 4
    assert "split" in lines[3]


def test_in_a_narrow_terminal_progress_has_no_bar() -> None:
    """The figures say more."""
    lines = shown(replace(FRAME, progress=Progress(250, 1000, 37.2)), width=30, height=10)
    assert lines[-1] == "25%  250 of 1,000  37 s left"


def test_what_a_drain_waits_for_may_take_two_lines() -> None:
    """No number is cut: what does not fit is left out from a word on."""
    drain = "draining for 3.1 s: waits for lines: 1,000 pending; split: 512 queued; count: 1,024 queued"
    assert shown(FRAME, drain=drain, width=40, height=10)[-2:] == [
        "draining for 3.1 s: waits for lines:",
        "1,000 pending; split: 512 queued; …",
    ]


def test_done_or_not_begun_there_is_no_time_left() -> None:
    """Nothing can be told before the first message is done, nor need it after the last."""
    for progress in (Progress(0, 10, None), Progress(10, 10, 0.0)):
        assert "left" not in shown(replace(FRAME, progress=progress))[-1]


def test_a_failure_is_one_line_that_says_what_where_and_on_what() -> None:
    """The method where it is not execute; the kind where the error does not tell it; no control characters."""
    assert repeated(FAILURE) == "split[1]: ValueError('not a line') at flow.py:12 on '\\x00'"
    held = structs.replace(
        FAILURE, what="tick", kind="held the event loop", error="0.15 s", place="", value="a\x1b[2J\nb"
    )
    assert repeated(held) == "split[1] tick: held the event loop: 0.15 s on a\\x1b[2J\\nb"


def test_the_summary_has_a_line_for_each_component_and_what_became_of_the_messages() -> None:
    """Exact counts, in a pipe of any width."""
    frame = replace(FRAME, dead_letters=2, left_over=3)
    assert [line.plain.rstrip() for line in closing_summary(frame, [], None)] == [
        "word-count: 12.4 s",
        "component  emitted  executed   acked  failed   per s  latency",
        "lines       12,340            11,340       0   1,000  19.3 ms",
        "split       74,040    12,340  12,339       1   1,000  6.80 µs",
        "dead letters: 2",
        "left over: 3 (messages without an outcome when the topology stopped)",
    ]


def test_the_summary_names_what_failed_most() -> None:
    """The most frequent first, and how many are not named."""
    failures = [
        structs.replace(FAILURE, what=f"method{count}", count=count) for count in (1, 7, 3, 1200, 5, 2)
    ]
    lines = [line.plain for line in closing_summary(FRAME, failures, None)]
    assert lines[-7] == "failures:"
    assert lines[-6].startswith("  1,200 times split[1] method1200: ")
    assert lines[-5].startswith("      7 times split[1] method7: ")
    assert lines[-1] == "  and 1 more"
    assert [line.plain for line in closing_summary(FRAME, failures[:1], None)][-1].startswith(
        "  once split[1] "
    )


def test_of_a_replay_the_summary_says_what_became_of_the_letters() -> None:
    """There are no other messages, so there are no dead letters to be counted."""
    lines = [line.plain for line in closing_summary(FRAME, [], None, "dead letters of a\nb.jsonl: 1 acked")]
    assert lines[-1] == "dead letters of a\\nb.jsonl: 1 acked"
    assert not any(line.startswith("dead letters: ") for line in lines)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_in_a_terminal_no_line_of_the_summary_is_too_long(width: int) -> None:
    """Failures are wrapped, their reason and their place included; figures are shortened."""
    name = "a-name-that-is-rather-long-for-a-component"
    long = structs.replace(FAILURE, task=f"{name}[0]", error="ValueError('not a line, but something else')")
    frame = frame_of(SPOUT, replace(BOLT, id=name))
    lines = closing_summary(frame, [long], width)
    assert width - 20 < max(line.cell_len for line in lines) <= width
    words = " ".join(line.plain.strip() for line in lines)
    assert "ValueError('not a line, but something else') at flow.py:12 on '\\x00'" in words
