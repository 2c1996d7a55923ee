"""The session: which one is used, and how quiet a new one is."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from stormlet.spark import SparkUnavailable, spark_session
from stormlet.spark.session import active_session

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


def test_importing_the_bridge_loads_no_pyspark() -> None:
    """``import stormlet.spark`` is cheap, and works where pyspark is missing."""
    code = "import sys, stormlet.spark; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
