"""The executors' Python and packages, compared with the driver's before anything runs there."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, cast

from stormlet.errors import SparkUnavailable
from stormlet.spark.engine.passage.connect import default_parallelism, is_one_machine

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

PACKAGES: Final = ("stormlet", "msgspec", "pyarrow")
"""The packages that stages use."""

_MISSING: Final = re.compile(r"No module named '(pyarrow|pandas|numpy)'")


def check_executors(session: SparkSession) -> None:
    """Raise :class:`~stormlet.errors.SparkUnavailable` if the Python of an executor, or a package there, is missing or
    another one. Where Spark runs on this machine alone, its tasks run this Python."""
    if is_one_machine(session):
        return
    expected = {"Python": _minor(platform.python_version()), **{each: version(each) for each in PACKAGES}}
    tasks = default_parallelism(session)
    rows = session.range(0, tasks, 1, tasks).mapInArrow(_asking(PACKAGES), "name string, version string")
    for name, found in sorted(_answers(rows), key=str):
        _compare(name, found, expected)


def _answers(rows: DataFrame) -> list[tuple[str, str | None]]:
    from pyspark.errors import PySparkException

    try:
        return cast("list[tuple[str, str | None]]", rows.distinct().collect())
    except PySparkException as error:
        # Spark itself imports them there, before it asks.
        missing = _MISSING.search(str(error))
        if missing is None:
            raise
        needed = ", ".join(f"{each}=={version(each)}" for each in (*PACKAGES, "pandas"))
        raise SparkUnavailable(
            f"an executor has no {missing[1]}; install {needed} into the Python of all executors"
        ) from error


def _compare(name: str, found: str | None, expected: Mapping[str, str]) -> None:
    if found is None:
        raise SparkUnavailable(
            f"an executor has no {name}; install {name}=={expected[name]} into the Python of all executors"
        )
    if (_minor(found) if name == "Python" else found) != expected[name]:
        raise SparkUnavailable(
            f"an executor has {name} {found}, and the driver {expected[name]}; install the same on both"
        )


def _minor(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _asking(packages: tuple[str, ...]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``. It is sent by value, as an executor may have no stormlet: it must not use any name
    of this module."""

    def ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import platform
        from importlib.metadata import PackageNotFoundError, version

        import pyarrow as pa

        found: dict[str, str | None] = {"Python": platform.python_version()}
        for package in packages:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = None
        for _ in batches:
            """Spark expects that all are taken."""
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(found)), pa.array(list(found.values()), pa.string())], names=["name", "version"]
        )

    return ask
