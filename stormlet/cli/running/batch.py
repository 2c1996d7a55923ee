"""One run of a topology on Spark by the command line."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final, cast

from stormlet.cli.parameters import Engine
from stormlet.cli.running.endings import interrupting
from stormlet.cli.running.meter import Meter
from stormlet.cli.running.outcome import Outcome, Result
from stormlet.cli.running.presenter import Presenter
from stormlet.cli.running.streams import GuardedStream
from stormlet.errors import InvalidConfiguration
from stormlet.model.builder_types import TopologyOptions
from stormlet.topology import Topology

if TYPE_CHECKING:
    from stormlet.spark import BatchResult

PATIENCE: Final = 10.0
"""Seconds that a run has to end after it was cancelled."""
PAUSE: Final = 0.2
"""Seconds from one look at its jobs to the next."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The choices in which one run on Spark differs from another."""

    settings: Mapping[str, object]
    files: tuple[Path, ...] = ()
    staging: str | None = None
    dead_letters: Path | None = None
    seed: int | None = None
    quiet: bool = False
    notes: Sequence[str] = ()
    """Sentences for the user when it starts."""


def check_options(engine: Engine, of_process: Mapping[str, object], of_spark: Mapping[str, object]) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` for an option that the engine has no use for; those that
    were not given are None or empty."""
    useless, other = (of_process, "process") if engine == "spark" else (of_spark, "spark")
    for name, value in useless.items():
        if value:
            raise InvalidConfiguration(
                f"{name} has no effect with --engine {engine}, as it is for --engine {other}; leave it out"
            )


def begin(master: str | None) -> None:
    """Start Spark before the topology is loaded, where its master was named: the topology may make DataFrames. Raise
    :class:`~stormlet.errors.SparkUnavailable` if that cannot be done."""
    if master is not None:
        from stormlet.spark import spark_session

        spark_session(master)


def say_notes(presenter: Presenter, notes: Iterable[str]) -> None:
    """Say what the user should know of the run, as ``check`` does."""
    for each in notes:
        presenter.say(f"note: {each}")


class BatchSession:
    """Runs a topology once on Spark, and says how it was.

    The run has a thread of its own. In the main thread PySpark would answer Ctrl-C by a call to the JVM in the midst of
    another one.
    """

    def __init__(self, topology: Topology, options: BatchOptions, errors: GuardedStream | None) -> None:
        self._topology = topology
        self._options = options
        self._presenter = Presenter(None, None if options.quiet else errors)

    def run(self) -> Result:
        """Run until its end. Raises what :func:`~stormlet.spark.run_on_spark` raises."""
        say_notes(self._presenter, self._options.notes)
        began = time.monotonic()
        work: Future[BatchResult] = Future()
        with interrupting("cancelling") as signals:
            try:
                Thread(target=self._run, args=(work,), name="stormlet run", daemon=True).start()
                result = work.result()
            except KeyboardInterrupt:
                _cancel(work)
                seconds = time.monotonic() - began
                return Result(self._topology.name, Outcome.CANCELLED, seconds, signal=signals[0])
        seconds = time.monotonic() - began
        meter = Meter(self._topology.describe(), self._options.settings, None)
        self._presenter.summarise(meter.summary(result.statistics, seconds), result.failures)
        return Result(self._topology.name, Outcome.FINISHED, seconds, statistics=result.statistics)

    def _run(self, work: Future[BatchResult]) -> None:
        from stormlet.spark import run_on_spark

        options = self._options
        try:
            result = run_on_spark(
                self._topology,
                files=options.files,
                dead_letters=options.dead_letters,
                seed=options.seed,
                staging=options.staging,
                **cast("TopologyOptions", options.settings),
            )
        except BaseException as error:
            work.set_exception(error)
        else:
            work.set_result(result)


def _cancel(work: Future[BatchResult]) -> None:
    """Cancel the jobs of the run, those too that it begins after this, until it has cleaned up. Whatever does not end
    goes with the process."""
    from stormlet.spark.session import active_session

    until = time.monotonic() + PATIENCE
    while not work.done() and time.monotonic() < until:
        with suppress(Exception):  # a JVM that is gone, or not there yet, does nothing more
            session = active_session()
            if session is not None:
                session.interruptAll()
        wait([work], PAUSE)
