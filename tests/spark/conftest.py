"""One Spark session for all tests of the bridge."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from stormlet.spark import SparkUnavailable, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "America/New_York",  # with summer time, and not this machine's own
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "2m",  # small, for the test of what happens above it
}

LONGEST = 240
"""Seconds for a test: the first one starts the session, and a write takes long on a cold JVM."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Called for what is in this directory."""
    item.add_marker(pytest.mark.timeout(LONGEST))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores. Where Spark cannot start the test is skipped, in CI it fails."""
    try:
        started = spark_session("local[2]", **OPTIONS)
    except SparkUnavailable as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))
    with _formats_are_kept():
        yield started
    started.stop()


@contextmanager
def _formats_are_kept() -> Iterator[None]:
    """A logger of PySpark gives its own format to each handler that it gets, and pytest gives its handlers, which all
    tests share, to every logger that does not propagate."""
    from pyspark.logger import PySparkLogger

    add = PySparkLogger.addHandler

    def keep(logger: PySparkLogger, handler: logging.Handler) -> None:
        before = handler.formatter
        add(logger, handler)
        handler.setFormatter(before or handler.formatter)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PySparkLogger, "addHandler", keep)
        yield
