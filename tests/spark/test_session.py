"""The session: which one is used, and how quiet a new one is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stormlet.spark import SparkUnavailable, spark_session
from stormlet.spark.session import _uninterrupted, active_session
from tests.spark.process_groups import end, left, start, wait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_active_session_is_used(spark: SparkSession) -> None:
    """A session that is there is taken as it is, whatever was asked for."""
    assert spark_session("local[7]", **{"spark.app.name": "other"}) is spark


def test_a_thread_without_an_active_session_uses_that_of_the_process(spark: SparkSession) -> None:
    """Sessions are active in a thread; in another one, the process's own is found."""
    found: list[SparkSession | None] = []
    thread = threading.Thread(target=lambda: found.append(active_session()))
    thread.start()
    thread.join()
    assert found == [spark]


def test_workers_run_this_python(spark: SparkSession) -> None:
    """Python workers are started with this interpreter, and so have what is installed here."""
    assert spark.sparkContext.pythonExec == sys.executable


def test_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is set up for Spark Connect is told so before anything starts."""
    monkeypatch.setattr("stormlet.spark.session.active_session", lambda: None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(SparkUnavailable, match="Spark Connect, which the bridge cannot use"):
        spark_session()


QUIET = """
from stormlet.spark import spark_session
spark = spark_session("local[1]")
try:
    spark.sql("select raise_error('loud')").collect()
except Exception:
    pass
"""


def test_a_new_session_writes_nothing(spark: SparkSession) -> None:
    """Neither the start of a JVM nor a failing job writes a word to the display."""
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


STARTING = """
print("loaded", flush=True)
from stormlet.spark import spark_session
spark_session("local[1]")
raise AssertionError("it has started")
"""


@pytest.mark.untraced
@pytest.mark.parametrize("seconds", [0.0, 0.7, 1.4])
def test_an_interrupted_start_leaves_no_jvm(spark: SparkSession, seconds: float, tmp_path: Path) -> None:
    """Ctrl-C at any moment of it is one line, and some seconds later nothing of it runs."""
    flow = tmp_path / "flow.py"
    flow.write_text(STARTING, "utf-8")
    leader = start("stormlet", "run", str(flow), out=subprocess.PIPE, errors=subprocess.PIPE)
    assert leader.stdout is not None
    assert leader.stderr is not None
    try:
        assert leader.stdout.readline() == b"loaded\n"
        time.sleep(seconds)
        os.killpg(leader.pid, signal.SIGINT)
        wait(leader)
        deadline = time.monotonic() + 60
        while left(leader) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert left(leader) == []
        assert leader.stderr.read() == b"stormlet: interrupted\n"
    finally:
        code = end(leader)
    assert code == 130


class Gateway:
    """A gateway to a program that ends when its input does."""

    def __init__(self) -> None:
        self.proc = subprocess.Popen(["cat"], stdin=subprocess.PIPE)


@pytest.mark.parametrize("later", [False, True])
def test_a_gateway_that_nobody_awaits_any_more_is_closed(later: bool) -> None:
    """Whether it comes up after the interrupt or in the same moment; the interrupt does not wait for it."""
    made: list[Gateway] = []
    go_on = threading.Event()

    def launch() -> Gateway:
        made.append(Gateway())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert not later or go_on.wait(60)
        return made[0]

    with pytest.raises(KeyboardInterrupt):
        _uninterrupted(launch)
    assert not later or made[0].proc.poll() is None
    go_on.set()
    assert made[0].proc.wait(60) == 0


def test_what_a_launch_raises_is_raised() -> None:
    """Also while it is awaited in another thread."""

    def launch() -> None:
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        _uninterrupted(launch)


def test_importing_the_bridge_loads_no_pyspark() -> None:
    """``import stormlet.spark`` is cheap, and works where pyspark is missing."""
    code = "import sys, stormlet.spark; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
