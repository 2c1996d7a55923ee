"""Tells the user of a run: on a terminal with the live view, elsewhere in plain lines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager

from stormlet.cli.fitting import encodable
from stormlet.cli.running.endings import write_at_once
from stormlet.cli.running.live import LiveView, is_terminal
from stormlet.cli.running.meter import Frame
from stormlet.cli.running.observation import Observation
from stormlet.cli.running.progress import report
from stormlet.cli.running.view import closing_summary
from stormlet.cli.streams import GuardedStream
from stormlet.core.shortened import visible
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
