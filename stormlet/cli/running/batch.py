"""One run of a topology on Spark by the command line."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal, TypeAlias, cast

from stormlet.cli.running.endings import write_at_once
from stormlet.cli.running.meter import Meter
from stormlet.cli.running.outcome import Outcome, Result
from stormlet.cli.running.presenter import Presenter
from stormlet.cli.running.signals import signals_handled_by
from stormlet.cli.running.streams import GuardedStream
from stormlet.errors import InvalidConfiguration
from stormlet.model.builder_types import TopologyOptions
from stormlet.topology import Topology

EngineName: TypeAlias = Literal["process", "spark"]


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The choices in which one run on Spark differs from another."""

    settings: Mapping[str, object]
    files: tuple[Path, ...] = ()
    staging: str | None = None
    dead_letters: Path | None = None
    seed: int | None = None
    quiet: bool = False


def check_options(
    engine: EngineName, of_process: Mapping[str, object], of_spark: Mapping[str, object]
) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` for an option that the engine has no use for; those that
    were not given are None or empty."""
    useless = of_process if engine == "spark" else of_spark
    for name, value in useless.items():
        if value:
            why = "a batch ends by itself" if engine == "spark" else "it is for --engine spark"
            raise InvalidConfiguration(f"{name} has no effect with --engine {engine}, as {why}; leave it out")


def begin(master: str | None) -> None:
    """Start Spark before the topology is loaded, where its master was named: the topology may make DataFrames. Raise
    :class:`~stormlet.errors.SparkUnavailable` if that cannot be done."""
    if master is not None:
        from stormlet.spark import spark_session

        spark_session(master)


class BatchSession:
    """Runs a topology once on Spark, and says how it was."""

    def __init__(self, topology: Topology, how: BatchOptions, errors: GuardedStream | None) -> None:
        self._topology = topology
        self._how = how
        self._presenter = Presenter(None, None if how.quiet else errors)
        self._signal: signal.Signals | None = None

    def run(self) -> Result:
        """Run until its end. Raises what :func:`~stormlet.spark.run_on_spark` raises."""
        from stormlet.spark import run_on_spark

        how, began = self._how, time.monotonic()
        try:
            with self._ended_by_signals():
                result = run_on_spark(
                    self._topology,
                    files=how.files,
                    dead_letters=how.dead_letters,
                    seed=how.seed,
                    staging=how.staging,
                    **cast("TopologyOptions", how.settings),
                )
        except KeyboardInterrupt:
            return Result(
                self._topology.name,
                Outcome.CANCELLED,
                time.monotonic() - began,
                signal=self._signal or signal.SIGINT,
            )
        seconds = time.monotonic() - began
        meter = Meter(self._topology.describe(), how.settings, None)
        self._presenter.summarise(meter.summary(result.statistics, seconds), result.failures)
        return Result(self._topology.name, Outcome.FINISHED, seconds, statistics=result.statistics)

    @contextmanager
    def _ended_by_signals(self) -> Generator[None]:
        def answer(number: int, frame: FrameType | None) -> None:
            self._signal = signal.Signals(number)
            write_at_once(f"{self._signal.name}: cancelling\n")
            raise KeyboardInterrupt

        with signals_handled_by(answer):
            yield
