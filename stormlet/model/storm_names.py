"""Storm's configuration names: those that are taken, those without effect here, and those that are refused.

The keys are those of Storm's ``Config.java``, with the names that older versions and the documents use. Each stands in
exactly one place: :data:`MAPPED` (and :data:`TIMEOUT_SWITCH`), :data:`REFUSED`, or the table behind
:func:`why_ignored`. A key is refused if ignoring it would silently change the results; it is ignored if it only sets
the place or the speed of a run. A null has no effect for refused and ignored keys: Storm writes it for a key that is
not set.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

import msgspec


class Mapped(msgspec.Struct, frozen=True):
    """A Storm key that is one of our options."""

    option: str
    """The option of :class:`stormlet.model.configuration.Configuration`."""

    convert: Callable[[object], object]
    """Converts Storm's value to ours. A value that it does not understand is passed on, for the option's own check to
    refuse; it raises :class:`ValueError` where that check would misread the value."""


def _same(value: object) -> object:
    return value


def _not_null(value: object) -> object:
    if value is None:  # no value for Storm, but "never" for us
        raise ValueError(f"null is no timeout; {TIMEOUT_SWITCH}: false switches timeouts off")
    return value


def _one_if_null(value: object) -> object:
    """Convert null, which in Storm means as many ackers as workers: here there is one worker."""
    return 1 if value is None else value


def _milliseconds(value: object) -> object:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    try:
        return value / 1000
    except OverflowError:  # no clock counts so far
        return inf


TIMEOUT_SWITCH: Final = "topology.enable.message.timeouts"
"""false sets ``message_timeout`` to None, whatever other keys say; true changes nothing."""

MAPPED: Final[dict[str, Mapped]] = {
    "topology.message.timeout.secs": Mapped("message_timeout", _not_null),
    "topology.acker.executors": Mapped("ackers", _one_if_null),
    "topology.max.spout.pending": Mapped("max_spout_pending", _same),
    "topology.executor.receive.buffer.size": Mapped("queue_capacity", _same),
    "topology.sleep.spout.wait.strategy.time.ms": Mapped("idle_max", _milliseconds),
    "topology.tick.tuple.freq.secs": Mapped("tick", _same),
    "topology.state.checkpoint.interval.ms": Mapped("epoch_seconds", _milliseconds),
}
"""Storm key -> our option."""

_NO_WINDOWS = "windows are not set up by options here, and without them other results would come out"
_NO_STATE = "there are no state providers; a file has the state: give the topology state=... (law X1)"

REFUSED: Final[dict[str, str]] = {
    "topology.tasks": "a component has as many tasks as its parallelism; give it parallelism=...",
    "topology.transactional.id": "epochs have no id but the file of the state; give the topology state=... (law X1)",
    "topology.state.provider": _NO_STATE,
    "topology.state.provider.config": _NO_STATE,
    "topology.environment": "the process's environment is not changed; set the variables before it starts",
    "topology.auto.task.hooks": "Java classes cannot run here; give topology.run(hooks=[...]) Python ones",
    "topology.bolts.window.length.count": _NO_WINDOWS,
    "topology.bolts.window.length.duration.ms": _NO_WINDOWS,
    "topology.bolts.window.sliding.interval.count": _NO_WINDOWS,
    "topology.bolts.window.sliding.interval.duration.ms": _NO_WINDOWS,
    "topology.bolts.tuple.timestamp.max.lag.ms": _NO_WINDOWS,
    "topology.bolts.late.tuple.stream": _NO_WINDOWS,
    "topology.bolts.message.id.field.name": _NO_WINDOWS,
    "topology.bolts.watermark.event.interval.ms": _NO_WINDOWS,
}
"""Storm key -> reason why it is an error."""

_IGNORED_FOR: Final[dict[str, str]] = {
    "there is one process and no workers": """
        workers worker.childopts worker.gc.childopts worker.logwriter.childopts worker.max.heap.size.mb
        worker.metrics worker.nimbus.thrift.client.use.tls worker.timeout.secs
        worker.receiver.thread.count worker.shared.thread.pool.size classpath classpath.beginning
        blobstore.map oci.image logging.config logging.sensitivity version""",
    "nothing is submitted to a cluster, so nothing is scheduled or replicated": """
        acker.cpu.pcore.percent acker.resources.offheap.memory.mb acker.resources.onheap.memory.mb
        component.cpu.pcore.percent component.resources.map component.resources.offheap.memory.mb
        component.resources.onheap.memory.mb metrics.consumer.cpu.pcore.percent
        metrics.consumer.resources.offheap.memory.mb metrics.consumer.resources.onheap.memory.mb
        isolate.machines max.replication.wait.time.sec min.replication.count priority
        ras.acker.executors.per.worker ras.constraint.max.state.search ras.constraint.max.time.secs
        ras.constraints ras.one.component.per.worker ras.one.executor.per.worker
        ras.order.executors.by.proximity.needs scheduler.favored.nodes scheduler.strategy
        scheduler.unfavored.nodes spread.components""",
    "a topology has no users of its own; who may start the process may do everything": """
        auto-credentials groups readonly.groups readonly.users submitter.principal submitter.user users""",
    "the name is the first argument of Topology": "name",
    "tasks are coroutines, not threads; a component has as many as its parallelism says": "max.task.parallelism",
    "queues are always bounded (law B6), and waiting costs nothing": """
        backpressure.enable backpressure.check.millis backpressure.wait.park.microsec
        backpressure.wait.progressive.level1.count backpressure.wait.progressive.level2.count
        backpressure.wait.progressive.level3.sleep.millis backpressure.wait.strategy bolt.wait.park.microsec
        bolt.wait.progressive.level1.count bolt.wait.progressive.level2.count
        bolt.wait.progressive.level3.sleep.millis bolt.wait.strategy executor.overflow.limit""",
    "an idle spout waits without spinning; idle_max bounds the pause (law S4)": """
        spout.recvq.skips spout.wait.park.microsec spout.wait.progressive.level1.count
        spout.wait.progressive.level2.count spout.wait.progressive.level3.sleep.millis spout.wait.strategy""",
    "tuples are handed over once per slice (law F1), by reference": """
        batch.flush.interval.millis flush.tuple.freq.millis producer.batch.dynamic producer.batch.size
        transfer.batch.size transfer.buffer.size disable.loadaware.messaging localityaware.higher.bound
        localityaware.lower.bound upstream.feedback.enable upstream.feedback.freq.secs""",
    "values are never serialised": """
        fall.back.on.java.serialization kryo.decorators kryo.factory kryo.register
        skip.missing.kryo.registrations state.kryo.register testing.always.try.serialize
        tuple.compression.enable tuple.compression.max.decompressed.bytes tuple.compression.threshold
        tuple.serializer""",
    "statistics are exact integers, and neither sampled nor sent to Java classes": """
        builtin.metrics.bucket.size.secs enable.send.iconnection.metrics enable.v2.metrics.tick
        metrics.consumer.register metrics.reporters serialized.message.size.metrics stats.ewma.enable
        stats.ewma.smoothing.factor stats.sample.rate v2.metrics.tick.interval.seconds""",
    "there is no event logger, and errors are logged by Python's logging": """
        debug error.throttle.interval.secs event.logger.register eventlogger.executors
        eventlogger.max.retained.files eventlogger.rotation.size.mb max.error.report.per.interval""",
    "there are no components in other processes": """
        multilang.log.handler multilang.serializer shellbolt.max.pending subprocess.timeout.secs""",
    "an epoch ends when its trees are settled (law X1), for which message_timeout is the bound": """
        state.synchronization.timeout.secs""",
    "there is no Trident; epoch_messages and epoch_seconds say how long an epoch is (law X1)": """
        spout.max.batch.size trident.batch.emit.interval.millis trident.windowing.cache.tuple.limit""",
}
"""Reason why a key has no effect -> the keys, without their common ``topology.``."""

IGNORED: Final = {f"topology.{key}": reason for reason, keys in _IGNORED_FOR.items() for key in keys.split()}

DAEMONS: Final = (
    "blacklist.", "blobstore.", "client.", "cluster.", "cpu.", "dev.", "drpc.", "executor.", "gpu.", "java.",
    "logs.", "logviewer.", "multitenant.", "nimbus.", "num.", "offheap.", "onheap.", "pacemaker.", "ras.",
    "resource.", "scheduler.", "storm.", "supervisor.", "task.", "transactional.", "ui.", "worker.", "zmq.",
)  # fmt: skip
"""Prefixes of keys that configure Storm's daemons, not a topology."""

NAMES: Final = (*MAPPED, TIMEOUT_SWITCH, *REFUSED, *IGNORED)
"""Every ``topology.`` key that is known, with or without effect."""


def why_ignored(name: str) -> str | None:
    """Return the reason why the Storm key ``name`` has no effect here; None for any other name."""
    if name.startswith(DAEMONS):
        return "it configures Storm's daemons, and there are none"
    return IGNORED.get(name)
