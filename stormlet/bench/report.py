"""The figures as a table: medians, least to most, and the share of the limit."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from stormlet.acceleration import is_compiled
from stormlet.bench.catalogue import WORKLOADS
from stormlet.bench.rounds import Measured, Results, figure
from stormlet.bench.state import without_state
from stormlet.bench.workload import LoopName
from stormlet.core.shortened import counted

UNITS: Mapping[str, str] = {
    "tuples_per_s": "{:,.0f} tuples/s",
    "tuples_per_cpu_s": "{:,.0f} tuples in a second of CPU time",
    "median_us": "{:,.0f} µs median",
    "p99_us": "{:,.0f} µs p99",
}
"""Figure -> its value in words."""

HEAD = ("what", "figure", "least to most", "of the limit")
HEAD_OF_STATE = (*HEAD[:3], "of the same without state")
GAP = "  "


def text(results: Results, rounds: int, loop: LoopName) -> str:
    """The circumstances, then the figures in columns."""
    head = HEAD_OF_STATE if all(WORKLOADS[name].kind == "state" for name in results) else HEAD
    return "\n\n".join((_headline(rounds, loop), "\n".join(table(head, list(_rows(results))))))


def as_json(results: Results) -> bytes:
    """Every value of every round."""
    data = {
        name: {which: measured.values for which, measured in result.figures.items()}
        for name, result in results.items()
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table in columns; none without rows."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        yield GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def spread(unit: str, values: Sequence[float]) -> str:
    """Least to most, in the precision of the unit."""
    number = unit.split("}")[0] + "}"
    return f"{number.format(min(values))} to {number.format(max(values))}"


def share(ratio: Measured) -> str:
    """The share of a limit: a fraction below it, a multiple above."""
    return f"1/{1 / ratio.median:.1f}" if ratio.median <= 1 else f"{ratio.median:.1f}"


def _headline(rounds: int, loop: LoopName) -> str:
    how_often = "one round" if rounds == 1 else f"median of {rounds} rounds"
    return (
        f"stormlet {'compiled' if is_compiled() else 'interpreted'}, {platform.python_implementation()} "
        f"{platform.python_version()}, {loop}, {counted(os.cpu_count() or 1, 'core')}, "
        f"{platform.platform(terse=True)}; {how_often} in which the workloads take turns."
    )


def _rows(results: Results) -> Iterator[Sequence[str]]:
    for name, result in results.items():
        for which, measured in result.figures.items():
            unit = UNITS[which]
            yield (
                WORKLOADS[name].label,
                unit.format(measured.median),
                spread(unit, measured.values),
                _of_limit(results, name, which, measured),
            )


def _of_limit(results: Results, name: str, which: str, measured: Measured) -> str:
    of_state = WORKLOADS[name].kind == "state"
    other = without_state(name) if of_state else "loops"
    limit = figure(results, other, which)
    if limit is None or name == other:
        return ""
    return f"{measured.over(limit).median:.2f}" if of_state else share(measured.over(limit))
