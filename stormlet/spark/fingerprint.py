"""What tells one DataFrame from another in every process, and which ones can be read again in another one.

``semanticHash()`` differs in every process, and a plan's text is the same for two directories: so the text of
the canonical plan goes together with the files that are read; for a DataFrame whose rows keep their places, of
each partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from stormlet.errors import InvalidTopology
from stormlet.spark.checkpoint import Fingerprint
from stormlet.spark.plans import NARROW, execution_of, expressions_in, kind_of, nodes_of, operators, scans_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHOOSING = {
    **dict.fromkeys(("GlobalLimit", "LocalLimit", "Offset", "Tail"), "limit or offset"),
    "Sample": "sample",
    **dict.fromkeys(("First", "Last"), "first, last or dropDuplicates of some columns"),
}
"""What in an optimised plan takes some rows of several that would do -> how users write it."""
ALL_FIELDS = 2**31 - 1


def check_resumable(frame: DataFrame) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` for a DataFrame whose rows may be others, or elsewhere,
    when it is read again."""
    execution = execution_of(frame)
    others = [kind for kind in map(kind_of, operators(frame)) if kind not in NARROW]
    if others:
        what = others[0].removesuffix("Exec")
        raise InvalidTopology(
            f"checkpoint= needs rows that keep their places, and this DataFrame's plan has {what}; give order_by= a "
            f"unique key, or write it to files first, and read those"
        )
    _check_deterministic(execution)


def check_repeatable(frame: DataFrame) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` for a DataFrame that may have other rows when it is read
    again, in whatever order."""
    execution = execution_of(frame)
    _check_deterministic(execution)
    nodes = nodes_of(execution.optimizedPlan())
    kinds = chain.from_iterable((kind_of(node), *map(kind_of, expressions_in(node))) for node in nodes)
    chosen = next((CHOOSING[kind] for kind in kinds if kind in CHOOSING), None)
    if chosen is not None:
        raise InvalidTopology(
            f"checkpoint= needs the same rows in every run, and {chosen} may take others each time; write this "
            f"DataFrame to files first, and read those"
        )


def _check_deterministic(execution: Any) -> None:
    if not execution.optimizedPlan().deterministic():
        raise InvalidTopology(
            "checkpoint= needs the same rows in every run, and this DataFrame computes some anew, as by rand(); "
            "write it to files first, and read those"
        )


def fingerprint_of(frame: DataFrame, columns: Sequence[str]) -> Fingerprint:
    """The fingerprint of a DataFrame that :func:`check_resumable` has passed."""
    files = [line for place, scan in enumerate(scans_of(frame)) for line in _files_by_partition(place, scan)]
    partitions = execution_of(frame).toRdd().getNumPartitions()
    return Fingerprint(tuple(columns), frame.schema.json(), _plan(frame), partitions, _digest(files))


def fingerprint_in_order(frame: DataFrame, columns: Sequence[str], order_by: Sequence[str]) -> Fingerprint:
    """The fingerprint of a DataFrame that :func:`check_repeatable` has passed, read in the order of a key: how
    Spark cuts it does not matter."""
    files = sorted({line for scan in scans_of(frame) for line in _all_files(frame, scan)})
    return Fingerprint(
        tuple(columns), frame.schema.json(), _plan(frame), 1, _digest(files), order_by=tuple(order_by)
    )


def _plan(frame: DataFrame) -> str:
    plan = execution_of(frame).optimizedPlan().canonicalized()
    # Verbose, and all fields; from Spark 4.1 on it may number the nodes, too.
    options = (True, False, ALL_FIELDS, False, False)
    return _digest([plan.treeString(*options[: 4 if frame.sparkSession.version.startswith("4.0.") else 5])])


def _all_files(frame: DataFrame, scan: Any) -> Iterator[str]:
    nothing = cast("Any", frame.sparkSession)._jvm.PythonUtils.toSeq([])
    directories = scan.relation().location().listFiles(nothing, nothing)
    for directory in range(directories.size()):
        files = directories.apply(directory).files()
        for number in range(files.size()):
            file = files.apply(number)
            yield f"{file.getPath().toString()} {file.getLen()} {file.getModificationTime()}"


def _files_by_partition(place: int, scan: Any) -> Iterator[str]:
    partitions = scan.inputRDD().filePartitions()
    for number in range(partitions.size()):
        for file in partitions.apply(number).files():
            yield f"{place} {number} {file.toString()} {file.fileSize()} {file.modificationTime()}"


def _digest(lines: Sequence[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()
