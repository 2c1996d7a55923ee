"""Standard error during a run: the live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager

from stormlet.cli.output import encodable
from stormlet.cli.running.connections import lost_connections
from stormlet.cli.running.endings import write_at_once
from stormlet.cli.running.live import LiveView, closing_summary, epoch_words, is_terminal, reported
from stormlet.cli.running.meter import Frame
from stormlet.cli.running.observation import PATIENCE, Observation
from stormlet.cli.running.streams import GuardedStream
from stormlet.cli.units import duration, rough_duration, short_count
from stormlet.core.shortened import counted, printable, visible
from stormlet.report.failures import RepeatedFailure


class Presenter:
    """All that goes to standard error; ``errors`` is None where nothing shall, or can."""

    def __init__(self, output: GuardedStream | None, errors: GuardedStream | None) -> None:
        self._errors = errors
        self._encoding = getattr(errors, "encoding", None) or "utf-8"
        self._view = LiveView(errors, output) if errors is not None and is_terminal(errors) else None

    def say(self, text: str) -> None:
        """One line, or several."""
        self._write(visible(text))

    def say_at_once(self, text: str) -> None:
        """One line, from a signal handler."""
        if self._view is not None and self._view.is_shown:
            self._view.screen.print_at_once(text)
        elif self._errors is not None:
            write_at_once(text)

    @contextmanager
    def showing(self, observation: Observation) -> Generator[None]:
        """Show what is observed meanwhile; a fault of the view does not reach the run."""
        if self._errors is None:
            yield
        elif self._view is None:
            with _beside(self._harmless(report(observation, self.say))):
                yield
        else:
            with self._view.shown(), _beside(self._harmless(self._view.run(observation))):
                yield

    def summarise(self, frame: Frame, failures: Sequence[RepeatedFailure], replayed: str = "") -> None:
        """The closing summary; on a terminal as wide as that, and in colour."""
        width = None if self._view is None else self._view.screen.size().columns
        summary = closing_summary(frame, failures, width, replayed)
        lines = (
            [each.plain.rstrip() for each in summary] if self._view is None else self._view.styled(summary)
        )
        self._write(encodable("\n".join(lines), self._encoding))

    def _write(self, text: str) -> None:
        if self._errors is not None:
            self._errors.write(f"{text}\n")
            self._errors.flush()

    async def _harmless(self, showing: Coroutine[object, object, None]) -> None:
        try:
            await showing
        except Exception as error:  # whatever it is: the run goes on
            if self._view is not None:
                self._view.hide()
            self.say(f"the view has ended, the run goes on: {error!r}")


@contextmanager
def _beside(coroutine: Coroutine[object, object, None]) -> Generator[None]:
    task = asyncio.create_task(coroutine, name="stormlet view")
    try:
        yield
    finally:
        task.cancel()


EVERY = 10.0
"""Seconds between two lines of progress."""
DRAIN_EVERY = 5.0
"""Seconds between two lines about a drain."""
MOST_SPOUTS = 4
"""The most spouts in one line."""

Say = Callable[[str], object]


async def report(observation: Observation, say: Say) -> None:
    """Say how far the run is, from time to time, and what a drain waits for."""
    await asyncio.gather(_report_progress(observation, say), _report_drain(observation, say))


async def _report_progress(observation: Observation, say: Say) -> None:
    while True:
        await asyncio.sleep(EVERY)
        say(progress_line(observation.frame()))


async def _report_drain(observation: Observation, say: Say) -> None:
    await observation.ending.begun.wait()
    await asyncio.sleep(PATIENCE)
    while True:
        if line := observation.drain():
            say(line)
        await asyncio.sleep(DRAIN_EVERY)


def progress_line(frame: Frame) -> str:
    """``10.0 s  lines 12,340 acked, 0 failed, 1,000 pending; 74.0 k tuples/s; 45 %, 12.0 s left``."""
    return f"{duration(frame.seconds)}  {'; '.join(_parts(frame))}"


def _parts(frame: Frame) -> Iterator[str]:
    spouts = [row for row in frame.rows if row.is_spout]
    for row in spouts[:MOST_SPOUTS]:
        yield f"{printable(row.id)} {row.acked:,} acked, {row.failed:,} failed, {row.waiting:,} pending"
    if len(spouts) > MOST_SPOUTS:
        yield f"and {counted(len(spouts) - MOST_SPOUTS, 'spout')} more"
    yield from reported(frame, "{:,}".format)
    yield f"{short_count(frame.tuples_per_second)} tuples/s"
    if frame.epoch is not None and frame.epoch.is_kept:
        yield epoch_words(frame.epoch)
    yield from lost_connections(frame)
    if frame.dead_letters:
        yield counted(frame.dead_letters, "dead letter")
    progress = frame.progress
    if progress is not None and progress.seconds_left is not None:
        yield f"{progress.done / progress.total:.0%} done, {rough_duration(progress.seconds_left)} left"
