"""What tells one DataFrame from another in every process, for those whose rows keep their places.

``semanticHash()`` differs in every process, and a plan's text is the same for two directories: so the text of
the canonical plan goes together with the files of each partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from stormlet.errors import InvalidTopology
from stormlet.spark.checkpoint import Fingerprint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCAN = "FileSourceScanExec"
NARROW = frozenset({SCAN, "RangeExec", "ProjectExec", "FilterExec", "UnionExec", "GenerateExec"})
"""The operators after which a row is where it was in every run."""
ALL_FIELDS = 2**31 - 1


def check_resumable(frame: DataFrame) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` for a DataFrame whose rows may be others, or elsewhere,
    when it is read again."""
    execution = _execution(frame)
    others = [kind for kind in map(_kind, _nodes(execution.sparkPlan())) if kind not in NARROW]
    if others:
        what = others[0].removesuffix("Exec")
        raise InvalidTopology(
            f"checkpoint= needs rows that keep their places, and this DataFrame's plan has {what}; write it to files "
            f"first, and read those"
        )
    if not execution.optimizedPlan().deterministic():
        raise InvalidTopology(
            "checkpoint= needs the same rows in every run, and this DataFrame computes some anew, as by rand(); "
            "write it to files first, and read those"
        )


def fingerprint_of(frame: DataFrame, columns: Sequence[str]) -> Fingerprint:
    """The fingerprint of a DataFrame that :func:`check_resumable` has passed."""
    execution = _execution(frame)
    plan = execution.optimizedPlan().canonicalized().treeString(True, False, ALL_FIELDS, False, False)
    scans = [node for node in _nodes(execution.sparkPlan()) if _kind(node) == SCAN]
    files = [line for place, scan in enumerate(scans) for line in _files_of(place, scan)]
    return Fingerprint(
        columns=tuple(columns),
        schema=frame.schema.json(),
        plan=_digest([plan]),
        partitions=execution.toRdd().getNumPartitions(),
        files=_digest(files),
    )


def _files_of(place: int, scan: Any) -> Iterator[str]:
    partitions = scan.inputRDD().filePartitions()
    for number in range(partitions.size()):
        for file in partitions.apply(number).files():
            yield f"{place} {number} {file.toString()} {file.fileSize()} {file.modificationTime()}"


def _execution(frame: DataFrame) -> Any:
    return cast("Any", frame)._jdf.queryExecution()


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _digest(lines: Sequence[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()
