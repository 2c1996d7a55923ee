"""The conduct of a passage towards its session and its user: settings, cancellation, errors, dead letters."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Generator, Iterable, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from inspect import isawaitable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from stormlet.core.outcomes import DeadLetter
from stormlet.core.shortened import shortened
from stormlet.errors import InvalidConfiguration, SparkFailed, StormletError
from stormlet.runtime.dead_letters import DeadLetterSink
from stormlet.spark.engine.passage.arrow_rows import BATCH_BYTES
from stormlet.spark.failures import is_server_gone, said_of_task
from stormlet.spark.threads import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final[Mapping[str, str]] = {
    # Else children of a union may be merged partition by partition, and a task would not know its number.
    "spark.sql.unionOutputPartitioning": "false",
    # Where two attempts of a task differ, Spark repeats what has read the first one (4.1 and later).
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
    # A row of ours is a chunk of a thousand tuples, and Arrow's batches have 64 MiB otherwise.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BATCH_BYTES),
}


def check_paths(
    where: str, files: Iterable[str | os.PathLike[str]], staging: str | os.PathLike[str] | None = None
) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` for what is not there, before Spark starts."""
    for file in files:
        if not Path(file).is_file():
            raise InvalidConfiguration(
                f"{where}: there is no file {os.fspath(file)!r} to send to the executors"
            )
    if staging is not None and not Path(staging).is_dir():
        raise InvalidConfiguration(
            f"{where}: there is no folder {os.fspath(staging)!r} for staging; make it first"
        )


def check_session(where: str, session: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` for what is no session of Spark."""
    kinds = [base.__module__ for base in type(session).__mro__ if base.__name__ == "SparkSession"]
    if not any(module.startswith("pyspark.sql") for module in kinds):
        raise InvalidConfiguration(
            f"{where}: spark must be a SparkSession, not {shortened(session)}; leave it out for the active one"
        )


def hand_over(letters: Iterable[DeadLetter], sink: DeadLetterSink | None) -> None:
    """Give dead letters to their sink, one after another."""
    if sink is None:
        return
    for each in letters:
        taken = sink(each)
        if isinstance(taken, Future):  # of a thread
            taken.result()
        elif isawaitable(taken):
            run_to_end(_awaited(taken))


@contextmanager
def settings(session: SparkSession) -> Generator[None]:
    """Run with :data:`SETTINGS`. Of several runs at a time the last one puts back what was set before the first."""
    # Several sessions of Python's may stand for one of the JVM's.
    key = str(getattr(session, "_jsparkSession", session))
    with _turn:
        before, others = _before.get(key) or (_set(session), 0)
        _before[key] = before, others + 1
    gone = False
    try:
        yield
    except BaseException as error:
        gone = is_server_gone(error)
        raise
    finally:
        with _turn:
            before, runs = _before.pop(key)
            if runs > 1:
                _before[key] = before, runs - 1
            elif not gone:  # else each call would be tried for ten minutes
                _put_back(session, before)


_turn = Lock()
_before: dict[str, tuple[Mapping[str, str | None], int]] = {}
"""Settings of sessions before the runs that are under way, and the number of these."""


def _set(session: SparkSession) -> Mapping[str, str | None]:
    """Set :data:`SETTINGS`; return what was set before."""
    before = {name: session.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return before


def _put_back(session: SparkSession, before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, value)


@contextmanager
def cancelled(session: SparkSession) -> Generator[None]:
    """Cancel the jobs of the run if it does not come to its end, as by Ctrl-C."""
    tag = f"stormlet-{uuid4()}"
    session.addTag(tag)
    try:
        yield
    except BaseException as error:
        if not is_server_gone(error):
            session.interruptTag(tag)
        raise
    finally:
        session.removeTag(tag)


@contextmanager
def explained() -> Generator[None]:
    """Raise what Spark raises as an error of ours: what a task has raised, if that was one."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except StormletError:
        raise
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(said_of_task(error)) from error


async def _awaited(taken: Awaitable[None]) -> None:
    await taken
