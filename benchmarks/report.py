"""The figures as the rows of a table, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from benchmarks.catalogue import WORKLOADS
from benchmarks.machine import Machine
from benchmarks.targets import Verdict, verdicts
from benchmarks.units import LIMITS, shown, spread
from stormlet.bench.report import share
from stormlet.bench.rounds import Measured, Pauses, Results, figure

TARGETS_HEAD = ("target", "measured", "met")
FIGURES_HEAD = ("what", "figure", "least to most", "of the limit", "collector")


class Report(msgspec.Struct, frozen=True):
    """One run of the command."""

    machine: Machine
    rounds: int
    results: Results

    @property
    def headline(self) -> str:
        """The machine, the day, and the number of rounds."""
        rounds = "one round" if self.rounds == 1 else f"median of {self.rounds} rounds"
        return f"{self.machine}; {rounds} in which the workloads take turns."

    @property
    def not_installed(self) -> str:
        """The peers that are missing, and the way out; empty if none is."""
        each = (f"{peer} ({command})" for peer, command in self.machine.missing.items())
        missing = ", ".join(each)
        return f"Not installed, and so not measured: {missing}." if missing else ""

    def verdicts(self) -> Sequence[Verdict]:
        """The targets whose figures were measured."""
        return list(verdicts(self.results, compiled=self.machine.compiled))


def figure_rows(results: Results) -> Iterator[Sequence[str]]:
    """A row for every figure, as :data:`FIGURES_HEAD` has it."""
    for name, result in results.items():
        collected = _collected(result.collector)
        for which, measured in result.figures.items():
            values = spread(which, measured.values)
            share = _share(results, name, which, measured)
            yield WORKLOADS[name].label, shown(which, measured.median), values, share, collected
            collected = ""


def target_rows(report: Report) -> Iterator[Sequence[str]]:
    """A row for every target, as :data:`TARGETS_HEAD` has it."""
    for each in report.verdicts():
        yield (
            each.target,
            each.shown,
            "asked of the other build" if each.met is None else "yes" if each.met else "no",
        )


def as_json(report: Report) -> bytes:
    """Every value of every round."""
    return msgspec.json.format(msgspec.json.encode(_data(report)), indent=2)


def _data(report: Report) -> Mapping[str, object]:
    return {
        "machine": report.machine,
        "rounds": report.rounds,
        "workloads": {name: _of_workload(report.results, name) for name in report.results},
        "targets": report.verdicts(),
    }


def _of_workload(results: Results, name: str) -> Mapping[str, object]:
    result = results[name]
    return {
        "label": WORKLOADS[name].label,
        "figures": {which: measured.values for which, measured in result.figures.items()},
        "shares_of_the_limit": {
            which: ratio.values
            for which, measured in result.figures.items()
            if (ratio := _over_limit(results, name, which, measured)) is not None
        },
        "collector": result.collector,
    }


def _share(results: Results, name: str, which: str, measured: Measured) -> str:
    ratio = _over_limit(results, name, which, measured)
    return "" if ratio is None else share(ratio)


def _over_limit(results: Results, name: str, which: str, measured: Measured) -> Measured | None:
    limit = LIMITS.get(which)
    if limit is None or limit == (name, which):
        return None
    other = figure(results, *limit)
    return None if other is None else measured.over(other)


def _collected(pauses: Sequence[Pauses]) -> str:
    """Of a typical round; the longest pause is that of all rounds."""
    if not pauses:
        return ""
    typical = sorted(pauses, key=lambda each: each.total_ms)[len(pauses) // 2]
    longest = max(each.longest_ms for each in pauses)
    return f"{typical.count:,} pauses, {typical.total_ms:,.0f} ms, longest {longest:,.1f} ms"
