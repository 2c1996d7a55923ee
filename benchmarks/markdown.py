"""The report as the README shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.report import FIGURES_HEAD, TARGETS_HEAD, Report, figure_rows, target_rows


def markdown(report: Report) -> str:
    """A paragraph that says what was measured where and when, and the tables."""
    parts = (
        f"`python -m benchmarks --rounds {report.rounds} --markdown` on {report.headline}",
        report.not_installed,
        "\n".join(_table(FIGURES_HEAD, list(figure_rows(report.results)))),
        "\n".join(_table(TARGETS_HEAD, list(target_rows(report)))),
    )
    return "\n\n".join(part for part in parts if part)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row)} |"
