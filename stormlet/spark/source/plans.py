"""Spark's query plans of a DataFrame: whether it can be read again, its fingerprint, and its extent.

A fingerprint must be the same in every process. ``semanticHash()`` is not, and a plan's text is the same for two
directories. So the text of the canonical plan goes together with the files that are read; for a DataFrame whose rows
keep their places, with the files of each partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import msgspec

from stormlet.errors import InvalidTopology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCAN = "FileSourceScanExec"
NARROW = frozenset({SCAN, "RangeExec", "ProjectExec", "FilterExec", "UnionExec", "GenerateExec"})
"""Operators after which each row has the same place in every run."""

CHOOSING = {
    **dict.fromkeys(("GlobalLimit", "LocalLimit", "Offset", "Tail"), "limit or offset"),
    "Sample": "sample",
    **dict.fromkeys(("First", "Last"), "first, last or dropDuplicates of some columns"),
}
"""Operator that may take some rows or others -> the name that users know it by."""
ALL_FIELDS = 2**31 - 1
COUNTED = frozenset({SCAN, "RangeExec", "ProjectExec", "UnionExec"})
"""Operators that neither leave out nor add rows."""
FORMATS = frozenset({"ParquetFileFormat", "OrcFileFormat"})
"""Formats whose files contain their number of rows."""
CHECKPOINT = "checkpoint="
MOST_PARTITIONS = 1000
"""With more partitions even the ends of files take long to read, and the source would wait for that."""


def execution_of(frame: DataFrame) -> Any:
    """Spark's ``QueryExecution``; PySpark has no public way to it."""
    return cast("Any", frame)._jdf.queryExecution()


def has_fixed_order(frame: DataFrame) -> bool:
    """True if Spark gives the same rows in the same partitions and order whenever it computes them."""
    return str(execution_of(frame).toRdd().outputDeterministicLevel()) == "DETERMINATE"


def operators(frame: DataFrame) -> list[Any]:
    """The nodes of the physical plan, the last one to be executed first."""
    return list(nodes_of(execution_of(frame).sparkPlan()))


def scans_of(frame: DataFrame) -> list[Any]:
    """The operators that read files."""
    return [node for node in operators(frame) if kind_of(node) == SCAN]


def nodes_of(tree: Any) -> Iterator[Any]:
    """A plan or an expression, and all of its parts."""
    yield tree
    children = tree.children()
    for number in range(children.size()):
        yield from nodes_of(children.apply(number))


def expressions_in(node: Any) -> Iterator[Any]:
    """The expressions of a plan's node, and all of their parts."""
    expressions = node.expressions()
    for number in range(expressions.size()):
        yield from nodes_of(expressions.apply(number))


def kind_of(node: Any) -> str:
    """The name of a node's class."""
    return str(node.getClass().getSimpleName())


def check_resumable(frame: DataFrame, needed_by: str = CHECKPOINT) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for a DataFrame whose rows may be others, or in other places,
    when it is read again."""
    execution = execution_of(frame)
    others = [kind for kind in map(kind_of, operators(frame)) if kind not in NARROW]
    if others:
        what = others[0].removesuffix("Exec")
        raise InvalidTopology(
            f"{needed_by} needs rows that keep their places, and this DataFrame's plan has {what}; give order_by= a "
            f"unique key, or write it to files first, and read those"
        )
    _check_deterministic(execution, needed_by)


def check_repeatable(frame: DataFrame, needed_by: str = CHECKPOINT) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for a DataFrame that may have other rows when it is read again,
    in any order."""
    execution = execution_of(frame)
    _check_deterministic(execution, needed_by)
    nodes = nodes_of(execution.optimizedPlan())
    kinds = chain.from_iterable((kind_of(node), *map(kind_of, expressions_in(node))) for node in nodes)
    chosen = next((CHOOSING[kind] for kind in kinds if kind in CHOOSING), None)
    if chosen is not None:
        raise InvalidTopology(
            f"{needed_by} needs the same rows in every run, and {chosen} may take others each time; write this "
            f"DataFrame to files first, and read those"
        )


def _check_deterministic(execution: Any, needed_by: str) -> None:
    if not execution.optimizedPlan().deterministic():
        raise InvalidTopology(
            f"{needed_by} needs the same rows in every run, and this DataFrame computes some anew, as by rand(); "
            f"write it to files first, and read those"
        )


class Fingerprint(msgspec.Struct, frozen=True):
    """Identity of a DataFrame, the same in every process."""

    columns: tuple[str, ...]
    """The columns that are read."""
    schema: str
    plan: str
    """Digest of the optimised plan."""
    partitions: int
    files: str
    """Digest of each partition's files: their paths, ranges, sizes and times."""
    order_by: tuple[str, ...] = ()
    """The columns of the key that orders the rows; then all of them count as one partition."""
    epoch_rows: int | None = None
    """Rows of an epoch, in a checkpoint that was written before epochs were kept in a state file."""


def differences(one: Fingerprint, other: Fingerprint) -> Sequence[str]:
    """Return the names of the parts that differ."""
    return [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]


def fingerprint_of(frame: DataFrame, columns: Sequence[str]) -> Fingerprint:
    """The fingerprint of a DataFrame that :func:`check_resumable` has passed."""
    files = [line for place, scan in enumerate(scans_of(frame)) for line in _files_by_partition(place, scan)]
    partitions = execution_of(frame).toRdd().getNumPartitions()
    return Fingerprint(tuple(columns), frame.schema.json(), _plan(frame), partitions, _digest(files))


def fingerprint_in_order(frame: DataFrame, columns: Sequence[str], order_by: Sequence[str]) -> Fingerprint:
    """The fingerprint of a DataFrame that :func:`check_repeatable` has passed, read in the order of a key: Spark's
    partitions do not matter."""
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


@dataclass(frozen=True, slots=True)
class Extent:
    """Number of rows and partitions; None if unknown."""

    rows: int | None = None
    partitions: int | None = None


def extent_of(frame: DataFrame) -> Extent:
    """The extent of a DataFrame. Blocks; Spark reads no more than the ends of files."""
    nodes = operators(frame)
    kinds = set(map(kind_of, nodes))
    if not kinds <= NARROW:
        return Extent()
    partitions = execution_of(frame).toRdd().getNumPartitions()
    counted = kinds <= COUNTED and all(_tells(node) for node in nodes if kind_of(node) == SCAN)
    return Extent(frame.count() if counted and partitions <= MOST_PARTITIONS else None, partitions)


def _tells(scan: Any) -> bool:
    return kind_of(scan.relation().fileFormat()) in FORMATS
