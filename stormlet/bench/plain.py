"""The report as a terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stormlet.bench.report import FIGURES_HEAD, TARGETS_HEAD, Report, figure_rows, target_rows

GAP = "  "


def text(report: Report) -> str:
    """Where and when, the figures, then the targets."""
    parts = (
        report.headline,
        report.not_installed,
        "\n".join(_table(FIGURES_HEAD, list(figure_rows(report.results)))),
        "\n".join(_table(TARGETS_HEAD, list(target_rows(report)))),
    )
    return "\n\n".join(part for part in parts if part)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        yield GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
