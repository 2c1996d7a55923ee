"""The report as a terminal shows it."""

from __future__ import annotations

from benchmarks.report import FIGURES_HEAD, TARGETS_HEAD, Report, figure_rows, target_rows
from stormlet.bench.report import table


def text(report: Report) -> str:
    """The headline, the figures, then the targets."""
    parts = (
        report.headline,
        report.not_installed,
        "\n".join(table(FIGURES_HEAD, list(figure_rows(report.results)))),
        "\n".join(table(TARGETS_HEAD, list(target_rows(report)))),
    )
    return "\n\n".join(part for part in parts if part)
