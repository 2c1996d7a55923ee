"""One run of a stream on Spark by the command line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, cast

from stormlet.cli.running.batch import BatchOptions, say_notes
from stormlet.cli.running.endings import interrupting
from stormlet.cli.running.meter import Meter
from stormlet.cli.running.outcome import Outcome, Result
from stormlet.cli.running.presenter import EVERY, Presenter
from stormlet.cli.running.streams import GuardedStream
from stormlet.core.shortened import counted
from stormlet.errors import InvalidConfiguration
from stormlet.model.builder_types import TopologyOptions
from stormlet.topology import Topology

if TYPE_CHECKING:
    from stormlet.spark import StreamRun

PAUSE: Final = 0.2
"""Seconds from one look at the run to the next: the wait of a lock would hold signals up."""


class StreamSession:
    """Runs a topology on Spark until its stream has ended, or is told to stop, and says how it was."""

    def __init__(self, topology: Topology, options: BatchOptions, errors: GuardedStream | None) -> None:
        self._topology = topology
        self._options = options
        self._presenter = Presenter(None, None if options.quiet else errors)

    def run(self) -> Result:
        """Run until its end. Raises what :func:`~stormlet.spark.stream_on_spark` and
        :meth:`~stormlet.spark.StreamRun.wait` raise."""
        from stormlet.spark import stream_on_spark

        options = self._options
        for name, value in (("--staging", options.staging), ("--seed", options.seed)):
            if value is not None:
                raise InvalidConfiguration(
                    f"{name} has no effect on a stream, whose epochs are kept in its checkpoint; leave it out"
                )
        say_notes(self._presenter, options.notes)
        began = time.monotonic()
        settings = cast("TopologyOptions", options.settings)
        with interrupting("finishing the epoch that is under way") as signals:
            try:
                stream = stream_on_spark(
                    self._topology, files=options.files, dead_letters=options.dead_letters, **settings
                )
            except KeyboardInterrupt:
                seconds = time.monotonic() - began
                return Result(self._topology.name, Outcome.CANCELLED, seconds, signal=signals[0])
            try:
                self._watch(stream)
            except KeyboardInterrupt:
                stream.stop()
        seconds = time.monotonic() - began
        meter = Meter(self._topology.describe(), options.settings, None)
        self._presenter.summarise(meter.summary(stream.statistics, seconds), stream.failures)
        outcome = Outcome.STOPPED if signals else Outcome.FINISHED
        return Result(
            self._topology.name,
            outcome,
            seconds,
            statistics=stream.statistics,
            signal=signals[0] if signals else None,
        )

    def _watch(self, stream: StreamRun) -> None:
        """Wait for its end, and say from time to time how far it is."""
        said, spoke = None, time.monotonic()
        while not stream.wait(PAUSE):
            if time.monotonic() - spoke >= EVERY and stream.epoch != said:
                said, spoke = stream.epoch, time.monotonic()
                letters = counted(stream.statistics.dead_letters, "dead letter")
                self._presenter.say(f"epoch {said} is done; {stream.acked:,} acked, {letters}")
