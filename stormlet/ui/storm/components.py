"""One component."""

from __future__ import annotations

from stormlet.model.plan import ACKER
from stormlet.ui.answers import NotFound
from stormlet.ui.storm.rows import error_of, executor_rows, input_rows, window_row, window_words
from stormlet.ui.storm.shapes import ComponentPage, OutputStats
from stormlet.ui.storm.words import in_url, status
from stormlet.ui.watched import Reading, Watched
from stormlet.ui.windows import WINDOWS, storms_name

MOST_ERRORS = 50
"""The most kinds of errors of one component in an answer."""


def check_component(watched: Watched, id: str) -> None:
    """Raise :class:`~stormlet.ui.answers.NotFound` if there is no such component."""
    if id not in watched.components:
        known = ", ".join(watched.components[:20])
        raise NotFound(f"topology {watched.name!r} has no component {id!r}; it has {known}")


def component(watched: Watched, id: str, window: str) -> ComponentPage:
    """One component, or the ackers; raises :class:`~stormlet.ui.answers.NotFound`."""
    check_component(watched, id)
    description, reading = watched.running.plan.description, watched.reading(window, id)
    span, is_spout = reading.component(id), watched.is_spout(id)
    rows = [window_row(watched, id, each) for each in WINDOWS]
    failures = [each for each in reversed(watched.running.failures()) if each.component == id]
    return ComponentPage(
        id=id,
        encoded_id=in_url(id),
        name=watched.name,
        component_type="spout" if is_spout else "bolt",
        executors=len(watched.tasks(id)),
        tasks=len(watched.tasks(id)),
        topology_id=watched.id,
        encoded_topology_id=in_url(watched.id),
        topology_status=status(watched.health.state),
        window=storms_name(window),
        window_hint=window_words(window),
        spout_summary=rows if is_spout else None,
        bolt_stats=None if is_spout else rows,
        input_stats=input_rows(description.bolts[id], span) if id in description.bolts else None,
        output_stats=outputs(watched, id, reading),
        executor_stats=list(executor_rows(watched, id, reading)),
        component_errors=[error_of(watched, each) for each in failures[:MOST_ERRORS]],
    )


def outputs(watched: Watched, id: str, reading: Reading) -> list[OutputStats]:
    """The streams of a component; those on which nothing was counted are there too."""
    if id == ACKER:
        return []
    seconds, counted = reading.figures.seconds, reading.figures.components[id].streams
    return [
        OutputStats(
            each,
            round(counted[each].emitted * seconds) if each in counted else 0,
            round(counted[each].transferred * seconds) if each in counted else 0,
        )
        for each in watched.running.plan.description.components[id].outputs
    ]
