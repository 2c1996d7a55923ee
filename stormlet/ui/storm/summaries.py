"""The process, its topologies, one topology."""

from __future__ import annotations

from importlib.metadata import version

from msgspec.structs import asdict

from stormlet.model.plan import ACKER
from stormlet.ui.registry import Registry
from stormlet.ui.storm.rows import bolt_row, spout_row, window_words
from stormlet.ui.storm.shapes import ClusterSummary, TopologyLine, TopologyPage, TopologySummary, WindowStats
from stormlet.ui.storm.words import in_url, milliseconds, pretty, status
from stormlet.ui.watched import Watched
from stormlet.ui.windows import WINDOWS, storms_name


def cluster(registry: Registry) -> ClusterSummary:
    """This process."""
    shown = registry.all()
    tasks = sum(map(_tasks, shown))
    return ClusterSummary(version("stormlet"), len(shown), 1, tasks, tasks)


def topologies(registry: Registry) -> TopologySummary:
    """All topologies."""
    return TopologySummary([_line(each) for each in registry.all()])


def _tasks(watched: Watched) -> int:
    return sum(len(watched.tasks(id)) for id in watched.components)


def _line(watched: Watched) -> TopologyLine:
    return TopologyLine(
        id=watched.id,
        encoded_id=in_url(watched.id),
        name=watched.name,
        status=status(watched.health.state),
        uptime=pretty(watched.uptime),
        uptime_seconds=int(watched.uptime),
        tasks_total=_tasks(watched),
        executors_total=_tasks(watched),
        workers_total=1,
    )


def topology(watched: Watched, window: str, *, system: bool) -> TopologyPage:
    """One topology; with its ackers, if ``system``."""
    reading, configuration = watched.reading(window), watched.running.plan.description.configuration
    own = [id for id in watched.components if id != ACKER or system]
    return TopologyPage(
        **asdict(_line(watched)),
        msg_timeout=configuration.message_timeout,
        window=storms_name(window),
        window_hint=window_words(window),
        debug=False,
        sampling_pct=100.0,
        topology_stats=[window_stats(watched, each) for each in WINDOWS],
        spouts=[spout_row(watched, id, reading.component(id)) for id in own if watched.is_spout(id)],
        bolts=[bolt_row(watched, id, reading.component(id)) for id in own if not watched.is_spout(id)],
        configuration=asdict(configuration),
    )


def window_stats(watched: Watched, window: str) -> WindowStats:
    """The counts of a topology in a window: emitted and transferred by all, the outcomes by its spouts."""
    reading = watched.reading(window)
    every = [reading.component(id) for id in watched.components if id != ACKER]
    spouts = [reading.component(id) for id in watched.components if watched.is_spout(id)]
    times = [each.figures.complete for each in spouts if each.figures.complete is not None]
    samples, took = sum(each.count for each in times), sum(each.count * each.mean for each in times)
    return WindowStats(
        window_pretty=window_words(window),
        window=storms_name(window),
        emitted=sum(each.count("emitted") for each in every),
        transferred=sum(each.count("transferred") for each in every),
        complete_latency=milliseconds(took / samples if samples else None),
        acked=sum(each.count("acked") for each in spouts),
        failed=sum(each.count("failed") for each in spouts),
    )
