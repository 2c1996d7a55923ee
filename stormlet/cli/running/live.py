"""The live view: the figures of a run on a terminal, four times a second; and the closing summary."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO, cast

from rich.text import Text

from stormlet.acceleration import how_it_runs
from stormlet.cli.output import bar, fitted
from stormlet.cli.running.connections import closed_connections, connection_lines
from stormlet.cli.running.meter import Completion, Frame, Row
from stormlet.cli.running.observation import Observation
from stormlet.cli.running.screen import Screen
from stormlet.cli.running.streams import GuardedStream, are_one_terminal
from stormlet.cli.running.table import closing_table, live_table
from stormlet.cli.units import duration, rough_duration, short_count, size
from stormlet.core.shortened import counted, printable
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import EpochStatistics

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_BAR = 30
SHOWN_FAILURES = 5
MOST_REPORTS = 4
"""The most components that report their progress on the terminal, one line each."""
MOST_STATES = 4
"""The most states that are shown on the terminal, one line each."""
ROOMY = 12
"""In a terminal of more lines, one stays empty between the view and what is printed above it."""


def live_view(
    frame: Frame, failures: Sequence[RepeatedFailure], drain: str, width: int, height: int
) -> list[Text]:
    """At most ``height`` lines; of more components, those that do most. ``drain`` says what a drain waits
    for."""
    reports = [Text(fitted(each, width)) for each in reported(frame, short_count)]
    epochs = [Text(fitted(each, width)) for each in epoch_lines(frame, short_count)]
    below = [
        *_progress(frame.progress, width),
        *reports,
        *epochs,
        *_connections(frame, width),
        *_broken(f"bottleneck: {frame.bottleneck}" if frame.bottleneck else "", width),
        *_broken(drain, width),
        *_last_failure(failures, width),
    ]
    above = [Text()] if height > ROOMY else []
    room = height - len(above) - len(below) - 2
    lines = [*above, _title(frame, width), *_table(frame.rows, width, room), *below]
    return lines[:height]


def closing_summary(
    frame: Frame, failures: Sequence[RepeatedFailure], width: int | None, replayed: str = ""
) -> list[Text]:
    """The last word on a run: every component, what became of the messages, and what failed most. A ``width``
    of None is any; of a run that emitted dead letters again, ``replayed`` has their outcomes."""
    title = f"{printable(frame.topology)}: {duration(frame.seconds)}; {how_it_runs()}"
    lines = [Text(line, style="bold") for line in _wrapped(title, width)]
    lines += closing_table(frame.rows, width)
    lines += map(Text, reported(frame, "{:,}".format, len(frame.reports)))
    lines += map(Text, epoch_lines(frame, "{:,}".format, None))
    lines += map(Text, closed_connections(frame, "{:,}".format))
    lines += map(Text, _undone(frame, replayed))
    if frame.bottleneck:
        lines += map(Text, _wrapped(printable(f"bottleneck: {frame.bottleneck}"), width))
    lines += _failures(failures, width)
    return lines


def repeated(failure: RepeatedFailure) -> str:
    """A failure on one line."""
    where = failure.task if failure.what == "execute" else f"{failure.task} {failure.what}"
    place = f" at {failure.place}" if failure.place else ""
    value = f" on {failure.value}" if failure.value else ""
    says_it = failure.kind.partition(" ")[0].lower() in failure.error.lower()
    error = failure.error if says_it else f"{failure.kind}: {failure.error}"
    return printable(f"{where}: {error}{place}{value}")


def reported(frame: Frame, count: Callable[[int], str], most: int = MOST_REPORTS) -> Iterator[str]:
    """``flights: 67.4 k of 337 k rows read, 20%``."""
    for component, each in islice(frame.reports.items(), most):
        known = "" if each.known is None else f" of {count(each.known)}"
        part = "" if each.known is None or each.done >= each.known else f", {each.done / each.known:.0%}"
        yield printable(f"{component}: {count(each.done)}{known} {each.unit}{part}")


def epoch_lines(frame: Frame, count: Callable[[int], str], most: int | None = MOST_STATES) -> Iterator[str]:
    """``epoch 120 committed 0.4 s ago, 312 messages wait for the next``, and a line for each state."""
    epoch = frame.epoch
    if epoch is None:
        return
    yield from _epoch(epoch, count)
    for state, each in islice(epoch.states.items(), most):
        yield printable(
            f"{state}: {counted(each.entries, 'entry', 'entries', count)}, about {size(each.bytes)}"
        )


def _epoch(epoch: EpochStatistics, count: Callable[[int], str]) -> Iterator[str]:
    withheld = counted_messages(epoch.withheld, count) if epoch.withheld else ""
    if epoch.is_kept:
        yield f"{epoch_words(epoch)}, {withheld} for the next" if withheld else epoch_words(epoch)
    elif withheld:
        yield f"{withheld} for the end of the epoch"


def counted_messages(number: int, count: Callable[[int], str]) -> str:
    """``1 message waits``, ``312 messages wait``."""
    return counted(number, "message waits", "messages wait", count)


def epoch_words(epoch: EpochStatistics) -> str:
    """``epoch 120 committed 0.4 s ago``."""
    if epoch.age is None:
        return "no epoch committed yet"
    return f"epoch {epoch.number:,} committed {duration(epoch.age)} ago"


def _title(frame: Frame, width: int) -> Text:
    """The name, and as many of the figures as there is room for."""
    title = Text.assemble((fitted(printable(frame.topology), max(width // 2, 10)), "bold"))
    for part in _headline(frame):
        if title.cell_len + len(part) + 3 <= width:
            title.append(f"   {part}")
    return title


def _headline(frame: Frame) -> Iterator[str]:
    yield duration(frame.seconds)
    if frame.dead_letters:
        yield counted(frame.dead_letters, "dead letter", show=short_count)
    yield f"{short_count(frame.tuples_per_second)} tuples/s"
    yield f"{short_count(frame.pending)} pending"


def _table(rows: Sequence[Row], width: int, room: int) -> list[Text]:
    if len(rows) <= room:
        return live_table(rows, width)
    busiest = sorted(rows, key=_busyness, reverse=True)
    kept = {row.id for row in busiest[: max(room - 1, 0)]}
    shown = [row for row in rows if row.id in kept]
    more = Text(fitted(f"and {len(rows) - len(shown)} that do less", width), style="dim")
    return [*live_table(shown, width), more]


def _busyness(row: Row) -> tuple[bool, int]:
    """Rates that are about the same count as the same, so that components do not take turns."""
    return row.is_crowded, int(row.per_second).bit_length()


def _progress(progress: Completion | None, width: int) -> Iterator[Text]:
    if progress is None:
        return
    fraction = progress.done / progress.total
    words = f" {fraction:4.0%}  {short_count(progress.done)} of {short_count(progress.total)}"
    if progress.seconds_left is not None and progress.done < progress.total:
        words += f"  {rough_duration(progress.seconds_left)} left"
    room = min(LONGEST_BAR, width - len(words))
    if room < 5:
        yield Text(fitted(words.strip(), width))
    else:
        yield Text.assemble(bar(fraction, room, "green"), words)


def _connections(frame: Frame, width: int) -> Iterator[Text]:
    for line, is_away in connection_lines(frame, short_count):
        yield Text(fitted(line, width), style="yellow" if is_away else "")


def _broken(sentence: str, width: int) -> Iterator[Text]:
    """At most two lines, broken between words: half a number would be another number."""
    for line in wrap(printable(sentence), width, max_lines=2, placeholder=" …"):
        yield Text(fitted(line, width), style="yellow")


def _last_failure(failures: Sequence[RepeatedFailure], width: int) -> Iterator[Text]:
    if failures:
        last = failures[-1]
        times = f"{short_count(last.count)} times " if last.count > 1 else ""
        yield Text(fitted(f"{times}{repeated(last)}", width), style="red")


def _undone(frame: Frame, replayed: str) -> Iterator[str]:
    yield printable(replayed) or _letters(frame)
    if frame.left_over:
        yield f"left over: {frame.left_over:,} (messages without an outcome when the topology stopped)"


def _letters(frame: Frame) -> str:
    if frame.written is None:
        return f"dead letters: {frame.dead_letters:,}"
    letters, left_over = frame.written
    return f"dead letters: {letters:,}{f', {left_over:,} of them left over' if left_over else ''}"


def _failures(failures: Sequence[RepeatedFailure], width: int | None) -> Iterator[Text]:
    if not failures:
        return
    most = sorted(failures, key=lambda each: -each.count)
    yield Text("failures:")
    counts = ["once" if each.count == 1 else f"{each.count:,} times" for each in most[:SHOWN_FAILURES]]
    digits = max(map(len, counts))
    for count, each in zip(counts, most, strict=False):
        yield from map(Text, _wrapped(f"  {count:>{digits}} {repeated(each)}", width))
    if len(most) > SHOWN_FAILURES:
        yield Text(f"  and {len(most) - SHOWN_FAILURES} more")


def _wrapped(text: str, width: int | None) -> list[str]:
    return [text] if width is None else wrap(text, width, subsequent_indent="    ", break_on_hyphens=False)


INTERVAL = 0.25
"""Seconds between two frames."""
MOST_OF_THE_TIME = 0.02
"""The part of the loop's time that frames may take: where one takes long, the next one comes later."""
DUMB = ("", "dumb", "unknown")


def is_terminal(stream: GuardedStream | None) -> bool:
    """True if lines of it can be drawn again in place."""
    return (
        stream is not None
        and cast("TextIO", stream).isatty()
        and os.environ.get("TERM", "").lower() not in DUMB
    )


class LiveView:
    """Draws below what the run prints to the same terminal."""

    def __init__(self, errors: GuardedStream, output: GuardedStream | None) -> None:
        from rich.console import Console

        terminal = cast("TextIO", errors)
        self.screen = Screen(terminal.fileno(), terminal.encoding)
        self._console = Console(
            file=terminal, force_terminal=True, highlight=False, markup=False, emoji=False
        )
        self.is_shown = False
        self._streams = [errors]
        if output is not None and are_one_terminal(cast("TextIO", output), terminal):
            self._streams.append(output)

    @contextmanager
    def shown(self) -> Generator[None]:
        """Have the streams print above the frames; in the end, the terminal is as if there had been none."""
        for stream in self._streams:
            stream.print_above(self.screen)
        self.is_shown = True
        try:
            with _drawn_again_when_continued(self.screen):
                yield
        finally:
            self.hide()

    def hide(self) -> None:
        """Take the last frame away and let the streams print as before."""
        self.is_shown = False
        self.screen.close()
        for stream in self._streams:
            stream.print_above(None)

    async def run(self, observation: Observation) -> None:
        """Draw until cancelled."""
        while True:
            began = time.perf_counter()
            self.draw(observation)
            await asyncio.sleep(max(INTERVAL, (time.perf_counter() - began) / MOST_OF_THE_TIME))

    def draw(self, observation: Observation) -> None:
        """Draw one frame."""
        size = self.screen.size()
        lines = live_view(
            observation.frame(), observation.failures(), observation.drain(), size.columns, size.lines - 1
        )
        self.screen.draw(list(zip(self.styled(lines), (line.cell_len for line in lines), strict=True)))

    def styled(self, lines: Sequence[Text]) -> list[str]:
        """The lines as this terminal shows colours."""
        return styled(self._console, lines)


def styled(console: Console, lines: Sequence[Text]) -> list[str]:
    """The lines with the control sequences of their styles, as the console allows them."""
    with console.capture() as capture:
        for line in lines:
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
    return capture.get().splitlines()


@contextmanager
def _drawn_again_when_continued(screen: Screen) -> Generator[None]:
    """After Ctrl-Z and ``fg``, the shell has written below the last frame."""
    continued = getattr(signal, "SIGCONT", None)
    if continued is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(continued, lambda number, frame: screen.forget())
    try:
        yield
    finally:
        signal.signal(continued, before)
