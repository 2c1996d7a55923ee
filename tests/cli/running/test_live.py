"""The live view in a real terminal."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from stormlet.acceleration import how_it_runs
from stormlet.cli.running.letters import Written
from stormlet.cli.running.live import closing_summary, live_view, repeated
from stormlet.cli.running.meter import Completion, Frame
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import Progress
from tests.cli.figures import BOLT, FAILURE, FRAME, SPOUT, bolt, frame_of
from tests.cli.flows import write

pytest.importorskip("pyte", reason="it draws what a terminal shows")

from tests.cli.terminal import Terminal, read_until

# Goes on until the file "end" is there.
RUNNING = """
    import asyncio
    from pathlib import Path
    def refuse(value: int) -> int:
        if value == 3:
            raise ValueError("three is refused")
        return value
    async def numbers():
        for number in range(10_000):
            yield number
            if number > 9:
                await asyncio.sleep(0.01)
            if Path("end").exists():
                return
    topology = Topology("running", max_attempts=1)
    refused = topology.bolt("refuse", refuse, topology.spout("numbers", numbers).shuffle())
    topology.bolt("{last}", {logic}, refused.shuffle())
    """

PRINTING = """
    topology = Topology("printing")
    topology.bolt("print", lambda value: print("line", value, "[bold]:smile:[/bold]", "x" * 70),
                  topology.spout("numbers", range({lines})).shuffle())
    """

SILENT = "lambda value: None"


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """80 by 24."""
    made = Terminal()
    yield made
    made.close()


def end() -> None:
    Path("end").touch()


def run(last: str = "last", logic: str = SILENT) -> None:
    write(RUNNING.format(last=last, logic=logic))


def is_shown(terminal: Terminal, text: str) -> bool:
    return text in terminal.text


def test_a_run_is_shown_and_ends_as_one_summary(terminal: Terminal) -> None:
    """While it lasts every component has its line, and the last failure; at the end only the closing summary is
    there, and the cursor was never hidden."""
    run()
    terminal.start("run", "flow.py")
    terminal.wait(lambda: is_shown(terminal, "pending") and is_shown(terminal, "three"))
    shown = terminal.text
    assert "running   " in shown
    assert "component  executed   per s   acked  failed        queue  latency" in shown
    assert [line.split()[0] for line in shown.splitlines() if "─" in line] == ["numbers", "refuse", "last"]
    end()
    terminal.wait()
    assert terminal.exit_code == 1
    assert terminal.text.count("component") == 1
    assert "pending" not in terminal.text
    assert "─" not in terminal.text
    assert "dead letters: 1" in terminal.lines
    assert b"\x1b[?25l" not in terminal.written


def test_logs_and_prints_stand_above_the_view(terminal: Terminal) -> None:
    """In order and as they are: the log, what bolts print to both streams, as text and as bytes."""
    run(
        "print",
        "lambda value: value < 6 and (print('out', value), print('err', value, file=sys.stderr), "
        "sys.stdout.buffer.write(b'raw %d\\n' % value))",
    )
    Path("flow.py").write_text("import sys\n" + Path("flow.py").read_text())
    terminal.start("run", "flow.py")
    terminal.wait(lambda: is_shown(terminal, "raw 5") and is_shown(terminal, "pending"))
    lines = list(terminal.history)
    order = [line for line in lines if line[:3] in ("out", "err", "raw")]
    assert order == [f"{what} {value}" for value in (0, 1, 2, 4, 5) for what in ("out", "err", "raw")]
    assert lines.index("raw 5") < next(n for n, line in enumerate(lines) if line.startswith("running "))
    assert any(line.startswith("ERROR stormlet") for line in lines)
    end()
    terminal.wait()


def test_many_lines_are_printed_in_order_and_at_once(terminal: Terminal) -> None:
    """Nothing is lost or changed among thousands of lines, and none has a frame of its own; a line that is wider than
    the terminal is wrapped by it alone."""
    write(PRINTING.format(lines=3_000))
    terminal.start("run", "flow.py")
    terminal.wait(seconds=120)
    expected = [f"line {number} [bold]:smile:[/bold] {'x' * 70}" for number in range(3_000)]
    printed = re.sub(r"\x1b\[\d*[A-Za-z]|\r", "", terminal.written.decode())
    assert [line for line in printed.split("\n") if line.startswith("line ")] == expected
    assert len(terminal.written) < 2 * len("\n".join(expected))
    assert terminal.exit_code == 0


@pytest.mark.parametrize(("columns", "lines"), [(40, 10), (20, 5), (200, 60)])
def test_it_fits_every_terminal(columns: int, lines: int) -> None:
    """Frames never scroll the terminal: nothing of them is left above the last one."""
    terminal = Terminal(columns, lines)
    run("a-bolt-with-a-very-long-name")
    terminal.start("run", "flow.py", "--log-level", "error", "--set", "max_attempts=1")
    terminal.wait(lambda: terminal.written.count(b"\x1b[J") > 3)
    assert sum(line.startswith("running ") for line in terminal.history) == 1
    end()
    terminal.wait()


def test_it_follows_the_size_of_the_terminal(terminal: Terminal) -> None:
    """After a resize the frames fit again, and there is one of them."""
    run()
    terminal.start("run", "flow.py")
    terminal.wait(lambda: is_shown(terminal, "latency"))
    terminal.resize(40, 12)
    terminal.wait(lambda: is_shown(terminal, "queue") and not is_shown(terminal, "latency"))
    terminal.resize(100, 30)
    terminal.wait(lambda: is_shown(terminal, "latency"))
    assert sum(line.startswith("running ") for line in terminal.lines) == 1
    end()
    terminal.wait()


def test_signals_are_answered_above_the_view(terminal: Terminal) -> None:
    """The answer stands in a line of its own, the exit code is that of the signal."""
    run()
    terminal.start("run", "flow.py")
    terminal.wait(lambda: is_shown(terminal, "pending"))
    terminal.signal(signal.SIGINT)
    terminal.wait()
    assert "SIGINT: draining; once more cancels" in terminal.lines
    assert terminal.exit_code == 130
    assert terminal.text.count("component") == 1


def test_a_drain_that_takes_long_is_shown_with_what_it_waits_for(terminal: Terminal) -> None:
    """Below the table, once it has lasted a second; a second signal cancels it."""
    write(
        """
        import asyncio
        async def stuck(value: int) -> None:
            await asyncio.Event().wait()
        topology = Topology("stuck", message_timeout=None)
        topology.bolt("stuck", stuck, topology.spout("numbers", range(5)).shuffle(), concurrency=5)
        """
    )
    terminal.start("run", "flow.py")
    terminal.wait(lambda: is_shown(terminal, "5 pending"))
    terminal.signal(signal.SIGTERM)
    terminal.wait(lambda: is_shown(terminal, "draining for"))
    line = next(line for line in terminal.lines if line.startswith("draining for"))
    assert line.endswith("waits for numbers: 5 pending; stuck: 5 in hand or held")
    terminal.signal(signal.SIGTERM)
    terminal.wait()
    assert terminal.exit_code == 143
    assert "SIGTERM: cancelling; once more kills" in terminal.lines


def test_with_standard_output_elsewhere_only_the_view_is_drawn(terminal: Terminal) -> None:
    """What is printed goes to the file as it is, and not to the terminal."""
    write(PRINTING.format(lines=20))
    with Path("printed").open("wb") as printed:
        terminal.start("run", "flow.py", output=printed.fileno())
        terminal.wait()
    assert Path("printed").read_text().count(":smile:") == 20
    assert "smile" not in terminal.text
    assert "dead letters: 0" in terminal.lines


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_dumb_terminal_has_no_view(terminal: Terminal, environment: dict[str, str]) -> None:
    """Not a single control sequence is written."""
    write(PRINTING.format(lines=2))
    terminal.start("run", "flow.py", **environment)
    terminal.wait()
    assert b"\x1b" not in terminal.written
    assert "dead letters: 0" in terminal.lines


def test_quiet_shows_nothing(terminal: Terminal) -> None:
    """Nothing but what the topology prints."""
    write(PRINTING.format(lines=1))
    terminal.start("run", "flow.py", "--quiet")
    terminal.wait()
    assert terminal.written.decode() == f"line 0 [bold]:smile:[/bold] {'x' * 70}\r\n"


def test_no_color_is_honoured(terminal: Terminal) -> None:
    """With NO_COLOR there is bold and dim, but no colour."""
    run()
    terminal.start("run", "flow.py", NO_COLOR="1")
    terminal.wait(lambda: is_shown(terminal, "pending") and is_shown(terminal, "three"))
    end()
    terminal.wait()
    assert {*re.findall(r"\x1b\[([\d;]*)m", terminal.written.decode())} == {"0", "1", "2"}


def test_a_print_without_end_of_line_waits_for_it(terminal: Terminal) -> None:
    """Nothing could stand beside the view; at the end, what is left is printed."""
    run("print", "lambda value: print(value, end='.') if 3 < value < 6 else None")
    terminal.start("run", "flow.py")
    terminal.wait(lambda: is_shown(terminal, "pending"))
    end()
    terminal.wait()
    assert "4.5." in terminal.lines


def test_lines_appear_while_user_code_holds_the_loop(terminal: Terminal) -> None:
    """A bolt that blocks and prints is seen printing, though no frame can be drawn meanwhile."""
    write(
        """
        import time
        from pathlib import Path
        def block(value):
            for number in range(10_000):
                print("step", number)
                time.sleep(0.02)
                if Path("end").exists():
                    return
        topology = Topology("blocking")
        topology.bolt("block", block, topology.spout("numbers", [1]).shuffle())
        """
    )
    terminal.start("run", "flow.py")
    terminal.wait(lambda: is_shown(terminal, "step 20"))
    end()
    terminal.wait()
    steps = [line for line in terminal.history if line.startswith("step")]
    assert steps == [f"step {number}" for number in range(len(steps))]


def test_a_crash_shows_the_traceback_below_the_summary(terminal: Terminal) -> None:
    """The view is gone by then."""
    write(
        """
        import asyncio
        async def numbers():
            yield 1
            await asyncio.sleep(0.5)
            raise ZeroDivisionError("no more")
        topology = Topology("crashing")
        topology.bolt("print", print, topology.spout("numbers", numbers).shuffle())
        """
    )
    terminal.start("run", "flow.py")
    terminal.wait()
    lines = terminal.text.splitlines()
    assert terminal.exit_code == 1
    assert lines.index("dead letters: 0") < lines.index("ZeroDivisionError: no more")
    assert terminal.text.count("component") == 1


def test_streams_of_two_terminals_are_not_mixed() -> None:
    """A print goes to the terminal that is standard output, not above the view on another one."""
    write(PRINTING.format(lines=2))
    terminal = Terminal()
    master, slave = os.openpty()
    terminal.start("run", "flow.py", output=slave)
    os.close(slave)
    terminal.wait()
    assert "smile" in read_until(master, "smile")
    assert b"smile" not in terminal.written
    os.close(master)


def shown(
    frame: Frame, failures: Sequence[RepeatedFailure] = (), drain: str = "", width: int = 80, height: int = 24
) -> list[str]:
    return [line.plain.rstrip() for line in live_view(frame, failures, drain, width, height)]


def test_the_view_has_title_table_progress_drain_and_the_last_failure() -> None:
    """In this order, one line each, below an empty one."""
    frame = replace(FRAME, progress=Completion(250, 1000, 37.2), dead_letters=2)
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
        frame_of(SPOUT, *(bolt(f"bolt {number} 長い") for number in range(40))),
        progress=Completion(1, 3, 2.0),
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


def test_one_is_no_plural() -> None:
    """Of what is counted."""
    assert "   1 dead letter   " in shown(replace(FRAME, dead_letters=1))[1]


def test_components_that_do_about_as_much_do_not_take_turns() -> None:
    """The first ones stay."""
    rows = [bolt(f"bolt{number}", per_second=1000 - number % 3) for number in range(8)]
    lines = shown(frame_of(*rows), height=5)
    assert [line.split()[0] for line in lines[2:]] == ["bolt0", "bolt1", "and"]


READ = Progress(67_355, 336_776, "rows read")
WRITTEN = Progress(202, None, "rows written")


def test_what_components_report_has_a_line_each() -> None:
    """How much of how much, where that is known; at the end exactly."""
    assert shown(replace(FRAME, reports={"flights": READ, "write": WRITTEN}), height=10)[-2:] == [
        "flights: 67.4 k of 337 k rows read, 20%",
        "write: 202 rows written",
    ]
    read = structs.replace(READ, done=336_776)
    done = replace(FRAME, reports={"flights": read, "write": WRITTEN})
    assert [line.plain for line in closing_summary(done, [], None)][4:6] == [
        "flights: 336,776 of 336,776 rows read",
        "write: 202 rows written",
    ]


def test_reports_leave_room_for_the_table() -> None:
    """However many there are, a few are shown."""
    lines = shown(replace(FRAME, reports={f"write{number}": WRITTEN for number in range(20)}), height=10)
    assert sum(line.endswith(": 202 rows written") for line in lines) == 4
    assert "split" in lines[3]


def test_in_a_narrow_terminal_progress_has_no_bar() -> None:
    """The figures say more."""
    lines = shown(replace(FRAME, progress=Completion(250, 1000, 37.2)), width=30, height=10)
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
    for progress in (Completion(0, 10, None), Completion(10, 10, 0.0)):
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
        f"word-count: 12.4 s; {how_it_runs()}",
        "component  emitted  executed   acked  failed   per s  latency",
        "lines       12,340            11,340       0   1,000  19.3 ms",
        "split       74,040    12,340  12,339       1   1,000  6.80 µs",
        "dead letters: 2",
        "left over: 3 (messages without an outcome when the topology stopped)",
    ]


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (Written(0, 0), "dead letters: 0"),
        (Written(1_234, 0), "dead letters: 1,234"),
        (Written(3, 1), "dead letters: 3, 1 of them left over"),
    ],
)
def test_the_summary_has_as_many_letters_as_the_file(written: Written, line: str) -> None:
    """Those of messages that are left over are among them, and are no dead letters of the statistics."""
    frame = replace(FRAME, dead_letters=written.letters - written.left_over, written=written)
    assert line in [each.plain for each in closing_summary(frame, [], None)]


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


LIMIT = "'geocode' awaits 97 % of its time and the queue before it is full: raise its concurrency (now 1)"


def test_the_bottleneck_is_told() -> None:
    """While it runs on two lines at most, and in the summary."""
    frame = replace(FRAME, bottleneck=LIMIT)
    assert shown(frame)[-2:] == [
        "bottleneck: 'geocode' awaits 97 % of its time and the queue before it is full:",
        "raise its concurrency (now 1)",
    ]
    assert f"bottleneck: {LIMIT}" in [line.plain for line in closing_summary(frame, [], None)]


def test_a_run_without_a_bottleneck_says_nothing_of_it() -> None:
    """Neither while it runs nor at its end."""
    lines = [*shown(FRAME), *(line.plain for line in closing_summary(FRAME, [], None))]
    assert not any("bottleneck" in line for line in lines)
