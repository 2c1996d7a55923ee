"""Frames and failures for the tests of what is shown."""

from __future__ import annotations

from dataclasses import replace

from stormlet.cli.running.meter import Frame, Row
from stormlet.report.failures import RepeatedFailure

SPOUT = Row("lines", True, 12_340, 0, 1_000.0, 11_340, 0, 1_000, 900, 1_000, 0.0193)
BOLT = Row("split", False, 74_040, 12_340, 1_000.0, 12_339, 1, 512, 0, 2_048, 0.0000068)
FRAME = Frame("word-count", 12.4, (SPOUT, BOLT), None, 0, 0)
FAILURE = RepeatedFailure(
    component="split",
    task="split[1]",
    what="execute",
    kind="ValueError",
    error="ValueError('not a line')",
    place="flow.py:12",
    value="'\\x00'",
    count=341,
)


def bolt(id: str, per_second: float = 0.0, waiting: int = 0) -> Row:
    """Another bolt."""
    return replace(BOLT, id=id, per_second=per_second, waiting=waiting, backlog=waiting)


def frame_of(*rows: Row) -> Frame:
    """A frame of these components."""
    return replace(FRAME, rows=rows)
