"""The trial of a write before there is any row, in which Spark checks its format, its options and its columns.

Theory of operation
-------------------
With each write Spark checks these in the driver, then makes the folder, and then has tasks write. The trial is a write
to a folder below a *file*: it comes as far as the folder, which cannot be made. So it runs no job, takes a twentieth of
a second and leaves nothing behind, on a cluster too; and any other error is one with which each write would end.

That holds for the formats of files that Spark brings. Others may write elsewhere than at their path, as "jdbc" does, so
Spark is only asked if it has them.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final, cast

from stormlet.errors import InvalidTopology
from stormlet.spark.failures import summary
from stormlet.spark.frames import is_of_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter, SparkSession

FILES: Final = frozenset({"avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml"})
"""The formats that are tried, in lower case."""
PASSES: Final = ("ParentNotDirectoryException", "AccessControlException", "SecurityException")
"""The errors of a write that passes: there is no folder, or nobody may write there, which says nothing of the sink."""
NOT_FOUND: Final = "Failed to find"
"""Words of Spark about a format that it does not have."""


def is_of_files(kind: str) -> bool:
    """True for a format of files that Spark brings."""
    return kind.lower() in FILES


def check_write(
    what: str, writer: DataFrameWriter, kind: str, session: SparkSession, folder: Path | None
) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` if Spark would refuse each write of this writer, whose format is
    ``kind``. ``folder`` is one that Spark's driver reaches; None for that of temporary files."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        if is_of_files(kind):
            _write_below_a_file(writer, folder)
        elif is_of_connect(session):
            _read_nothing(session, kind)
        else:
            _look_up(session, kind)
    except (PySparkException, Py4JError) as error:
        if not any(each in str(error) for each in PASSES):
            raise InvalidTopology(f"{what} can take no row: {summary(error)}; {_way_out(error)}") from error


def _write_below_a_file(writer: DataFrameWriter, folder: Path | None) -> None:
    with NamedTemporaryFile(prefix="stormlet-sink-", dir=folder) as file:
        # Not a URI: its escapes would be part of the name.
        writer.save(f"file:///{Path(file.name).as_posix().lstrip('/')}/folder")


def _look_up(session: SparkSession, kind: str) -> None:
    from py4j.protocol import Py4JError

    untyped = cast("Any", session)
    try:
        source = untyped._jvm.org.apache.spark.sql.execution.datasources.DataSource
        source.lookupDataSource(kind, untyped._jsparkSession.sessionState().conf())
    except Py4JError as error:  # some clusters let nobody ask
        if NOT_FOUND in str(error):
            raise


def _read_nothing(session: SparkSession, kind: str) -> None:
    from pyspark.errors import PySparkException

    try:
        _ = session.read.format(kind).load().columns  # without options it reads nothing
    except PySparkException as error:
        if NOT_FOUND in str(error):
            raise


def _way_out(error: Exception) -> str:
    if NOT_FOUND in str(error):
        return (
            'give a format= that Spark has, such as "parquet", or build the session with the package that brings it '
            "(spark.jars.packages)"
        )
    return "change format=, options= or the columns"
