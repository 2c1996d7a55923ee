"""The lines of charts, a column for each."""

from __future__ import annotations

import msgspec

from stormlet.ui.views.numbers import rounded
from stormlet.ui.watched import Watched
from stormlet.ui.windows import WINDOWS


class Lines(msgspec.Struct, frozen=True):
    """The points of a topology or a component in a window, oldest first."""

    at: list[int]
    """Milliseconds since 1970."""
    throughput: list[float | None]
    """Of a topology, messages acked; of a spout, emits; of a bolt, executed inputs; in a second."""
    pending: list[float | None]
    latency: list[float | None]
    """Seconds: the median from the emit of a message to its ack, or of ``execute``."""


def lines_of(watched: Watched, window: str, component: str) -> Lines:
    """Return the lines of a component, or of the topology."""
    points = watched.series(window, component)
    seconds = WINDOWS[window]
    since = 0.0 if seconds is None or not points else points[-1].at - seconds
    shown = [each for each in points if each.at > since]
    began = watched.began.timestamp()
    return Lines(
        [round((began + each.at) * 1000) for each in shown],
        [rounded(each.throughput) for each in shown],
        [rounded(each.pending) for each in shown],
        [rounded(each.p50) for each in shown],
    )
