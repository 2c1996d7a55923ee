"""The packages of executors, compared with the driver's."""

from __future__ import annotations

from importlib.metadata import version
from unittest.mock import Mock

import pytest
from pyspark.errors import PySparkException

from stormlet.errors import SparkUnavailable
from stormlet.spark.engine.passage.executors import check_executors


def asked(answer: object) -> Mock:
    """The session of a cluster whose executors answer this, or raise it."""
    session = Mock(name="session")
    session.conf.get.return_value = "spark://host:7077"
    session.sparkContext.defaultParallelism = 2
    collect = session.range.return_value.mapInArrow.return_value.distinct.return_value.collect
    collect.side_effect = [answer]
    return session


def test_another_version_is_refused() -> None:
    """Both are named."""
    with pytest.raises(
        SparkUnavailable, match=r"an executor has msgspec 0\.0\.1, and the driver 0\."
    ) as caught:
        check_executors(asked([("msgspec", "0.0.1"), ("pyarrow", version("pyarrow"))]))
    assert str(caught.value).endswith("install the same on both")


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "numpy"])
def test_what_spark_misses_there_is_named(package: str) -> None:
    """Spark fails before it asks, and the message says all that is needed."""
    error = PySparkException(f"Traceback\nModuleNotFoundError: No module named '{package}'\n")
    with pytest.raises(SparkUnavailable, match=f"an executor has no {package}; install stormlet=="):
        check_executors(asked(error))


def test_another_error_stays_what_it_is() -> None:
    """It is none of the executors' packages."""
    with pytest.raises(PySparkException, match="the cluster is gone"):
        check_executors(asked(PySparkException("the cluster is gone")))
