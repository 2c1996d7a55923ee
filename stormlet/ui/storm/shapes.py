"""The answers of the REST, named as Storm names them. Their docstrings are the descriptions in the OpenAPI document."""

from __future__ import annotations

import msgspec


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An object of an answer."""


class ClusterSummary(Shape, frozen=True):
    """This process."""

    stormlet_version: str
    topologies: int
    supervisors: int
    """Always 1."""
    executors_total: int
    """Tasks, as each is an executor."""
    tasks_total: int


class TopologyLine(Shape, frozen=True):
    """One topology in the list of all."""

    id: str
    encoded_id: str
    name: str
    status: str
    """ACTIVE, INACTIVE, STARTING, DRAINING, STOPPED or CRASHED."""
    uptime: str
    uptime_seconds: int
    tasks_total: int
    executors_total: int
    workers_total: int
    """Always 1."""


class TopologySummary(Shape, frozen=True):
    """All topologies."""

    topologies: list[TopologyLine]


class WindowStats(Shape, frozen=True):
    """The counts of a topology in a window."""

    window_pretty: str
    window: str
    """Seconds, or ``:all-time``."""
    emitted: int
    transferred: int
    complete_latency: str
    """Milliseconds, with three decimals."""
    acked: int
    failed: int


class ComponentRow(Shape, frozen=True, kw_only=True):
    """The part that the rows of spouts and bolts have in common."""

    executors: int
    tasks: int
    emitted: int
    transferred: int
    acked: int
    failed: int
    last_error: str
    """Empty if there was none."""
    error_time: int | None
    """Seconds since 1970."""
    error_lapsed_secs: int | None


class SpoutRow(ComponentRow, frozen=True, kw_only=True):
    """A spout in its topology."""

    spout_id: str
    encoded_spout_id: str
    complete_latency: str


class BoltRow(ComponentRow, frozen=True, kw_only=True):
    """A bolt in its topology; ``__acker`` with ``sys=true``."""

    bolt_id: str
    encoded_bolt_id: str
    capacity: str
    """The part of the window in which it was busy; three decimals."""
    execute_latency: str
    executed: int
    process_latency: str


class TopologyPage(Shape, frozen=True, kw_only=True):
    """One topology."""

    id: str
    encoded_id: str
    name: str
    status: str
    uptime: str
    uptime_seconds: int
    tasks_total: int
    workers_total: int
    executors_total: int
    msg_timeout: float | None
    """Seconds; null if messages do not time out."""
    window: str
    window_hint: str
    debug: bool
    """Always false."""
    sampling_pct: float
    """Always 100: counts are exact."""
    topology_stats: list[WindowStats]
    spouts: list[SpoutRow]
    bolts: list[BoltRow]
    configuration: dict[str, int | float | str | None]
    """By our names of options."""


class InputStats(Shape, frozen=True):
    """A bolt's inputs of one stream. What is counted for all inputs of a bolt together is null where it has several."""

    component: str
    encoded_component_id: str
    stream: str
    execute_latency: str | None
    process_latency: str | None
    executed: int | None
    acked: int | None
    failed: int | None


class OutputStats(Shape, frozen=True):
    """The tuples that a component emits on one stream."""

    stream: str
    emitted: int
    transferred: int


class ExecutorStats(Shape, frozen=True, kw_only=True):
    """One task."""

    id: str
    """As ``[2-2]``."""
    uptime: str
    uptime_seconds: int
    emitted: int
    transferred: int
    acked: int
    failed: int
    complete_latency: str | None = None
    """Of a spout."""
    capacity: str | None = None
    """Of a bolt, as the following ones."""
    execute_latency: str | None = None
    executed: int | None = None
    process_latency: str | None = None


class ComponentError(Shape, frozen=True):
    """A kind of failures, with the number of times that it has happened."""

    error: str
    """The message, and the traceback of the first one."""
    error_time: int
    error_lapsed_secs: int
    count: int


class ComponentStatsRow(Shape, frozen=True, kw_only=True):
    """The counts of a component in a window."""

    window_pretty: str
    window: str
    emitted: int
    transferred: int
    acked: int
    failed: int
    complete_latency: str | None = None
    capacity: str | None = None
    execute_latency: str | None = None
    executed: int | None = None
    process_latency: str | None = None


class ComponentPage(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """One component."""

    id: str
    encoded_id: str
    name: str
    """Of its topology."""
    component_type: str
    """spout or bolt."""
    executors: int
    tasks: int
    topology_id: str
    encoded_topology_id: str
    topology_status: str
    window: str
    window_hint: str
    spout_summary: list[ComponentStatsRow] | None = None
    """Of a spout: a row for each window."""
    bolt_stats: list[ComponentStatsRow] | None = None
    """Of a bolt: a row for each window."""
    input_stats: list[InputStats] | None = None
    output_stats: list[OutputStats]
    executor_stats: list[ExecutorStats]
    component_errors: list[ComponentError]


def keyword(name: str) -> str:
    """Return a name as Clojure, in which Storm once was written, has it."""
    return f":{name}" if name == "uptime_secs" else f":{name.replace('_', '-')}"


class NodeInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=keyword):
    """A subscription."""

    component: str
    stream: str
    sani_stream: str
    grouping: str


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=keyword):
    """A component of the visualization."""

    type: str
    capacity: float
    latency: float
    """Milliseconds: of a spout from emit to ack, of a bolt in ``execute``."""
    transferred: int
    stats: list[NodeStats]
    link: str
    inputs: list[NodeInput]


class NodeStats(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=keyword):
    """The tuples that one task has delivered."""

    host: str
    """Always localhost."""
    port: int
    """Always 0."""
    uptime_secs: int
    transferred: dict[str, dict[str, int]]
    """By window and stream; all streams of a task are counted together, as ``default``."""


class StreamValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number of one stream."""

    stream_id: str
    value: float


class InputValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number of the inputs of one stream."""

    component_id: str
    stream_id: str
    value: float


class SpoutMetrics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of a spout."""

    id: str
    emitted: list[StreamValue]
    transferred: list[StreamValue]
    acked: list[StreamValue]
    failed: list[StreamValue]
    complete_ms_avg: list[StreamValue]


class BoltMetrics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of a bolt."""

    id: str
    emitted: list[StreamValue]
    transferred: list[StreamValue]
    acked: list[InputValue]
    failed: list[InputValue]
    process_ms_avg: list[InputValue]
    executed: list[InputValue]
    executed_ms_avg: list[InputValue]


class TopologyMetrics(Shape, frozen=True):
    """The numbers of all components in a window."""

    window: str
    window_hint: str
    spouts: list[SpoutMetrics]
    bolts: list[BoltMetrics]


class SpoutLag(Shape, frozen=True):
    """The lag of a spout behind its broker."""

    spout_id: str
    spout_type: str
    """The scheme of the broker's address, in capitals, such as KAFKA."""
    spout_lag_result: dict[str, int]
    """Messages that are not settled, by partition or queue."""


class Operation(Shape, frozen=True):
    """An operation that was asked of a topology, and is done."""

    topology_operation: str
    topology_id: str
    status: str
    """Always success."""
