"""Options that defeat each other: no ackers for tracked messages, batches that wait longer than their members may, and
messages that crash the topology before they are given up."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.checks.finding import Finding, options_of, upstream
from stormlet.core.shortened import counted
from stormlet.drawing.anchoring import tracks
from stormlet.model.components import BatchBolt
from stormlet.model.configuration import Configuration
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind, component_class

EXPECTED = {
    SourceKind.FED: "awaiting one raises NotTracked",
    SourceKind.GENERATOR: "none that fails is replayed",
    SourceKind.ITERABLE: "none that fails is replayed",
    SourceKind.FACTORY: "its fail is never called",
}


def untracked_messages(description: Description) -> Iterator[Finding]:
    """Without ackers, tracked messages count as acked (law L9)."""
    if description.configuration.ackers:
        return
    for spout in description.spouts.values():
        if any(tracks(spout, stream) for stream in spout.outputs):
            yield Finding(
                "no ackers",
                spout.id,
                f"ackers=0: the messages of spout {spout.id!r} count as acked when they are emitted, "
                f"and {EXPECTED[spout.kind]}",
                "set ackers=1 or more, or emit without message_id from a Spout class",
            )


def overflowing_ackers(description: Description) -> Iterator[Finding]:
    """Spouts that may have more pending than the ackers take: emissions fail with OVERFLOW then (law L13)."""
    configuration = description.configuration
    if configuration.acker_high_water is None or not configuration.ackers:
        return
    room = 2 * configuration.acker_high_water * configuration.ackers
    pending = 0
    for spout in description.spouts.values():
        most = options_of(description, spout).max_spout_pending
        if most is None:
            return  # that is a choice, and the high water is what guards it
        pending += most * spout.parallelism
    if pending > room:
        yield Finding(
            "high water",
            None,
            f"the spouts may have {counted(pending, 'message')} pending, but "
            f"acker_high_water={configuration.acker_high_water} gives {counted(room, 'tree')} room: "
            f"the others fail with OVERFLOW",
            "raise acker_high_water, leave it out, or lower max_spout_pending",
        )


def replays_after_the_drain(description: Description) -> Iterator[Finding]:
    """A message that waits for its replay longer than a drain lasts is left over (law C3). Without ackers there are
    no replays (law L9)."""
    drain = description.configuration.drain_timeout if description.configuration.ackers else None
    for spout in description.spouts.values():
        options = options_of(description, spout)
        replays = spout.kind in (SourceKind.GENERATOR, SourceKind.ITERABLE) and options.max_attempts > 1
        if drain is not None and replays and options.replay_delay > drain:
            yield Finding(
                "late replay",
                spout.id,
                f"spout {spout.id!r} replays after {options.replay_delay:g} seconds, but a drain ends after "
                f"drain_timeout={drain:g}: a message that fails meanwhile is left over",
                "lower replay_delay, or raise drain_timeout",
            )


def batches_slower_than_the_timeout(description: Description) -> Iterator[Finding]:
    """A member times out ``message_timeout`` after its emit (law L12), a batch waits for ``within``. Without ackers
    nothing times out (law L9)."""
    configuration = description.configuration
    timeout = configuration.message_timeout if configuration.ackers else None
    for bolt in description.bolts.values():
        within = batch_within(component_class(bolt.logic))
        if timeout is not None and within is not None and timeout <= within:
            yield Finding(
                "slow batch",
                bolt.id,
                f"bolt {bolt.id!r} may hold a batch for within={within:g} seconds, and message_timeout={timeout:g}: "
                "its members time out while they wait",
                "raise message_timeout, or lower within",
            )


def batch_within(cls: type | None) -> float | None:
    """The seconds that a batch may take to fill, as far as the class says; its instances may say otherwise."""
    if cls is None or not issubclass(cls, BatchBolt) or cls.resets_timeouts:
        return None
    return cls.within


def poison_messages(description: Description) -> Iterator[Finding]:
    """Bolts that each failed attempt restarts: a message with more attempts than the bolt has restarts crashes the
    topology before it becomes a dead letter (laws S6, C5)."""
    for bolt in description.bolts.values():
        if bolt.on_error != "restart":
            continue
        restarts = options_of(description, bolt)
        for spout in upstream(description, bolt):
            if isinstance(spout, SpoutSpec) and _crash(restarts, options_of(description, spout), spout):
                yield _finding(
                    bolt, restarts.max_restarts, spout, options_of(description, spout).max_attempts
                )
                break


def _crash(restarts: Configuration, replays: Configuration, spout: SpoutSpec) -> bool:
    """True if the engine replays a message often enough, and soon enough."""
    if spout.kind not in (SourceKind.GENERATOR, SourceKind.ITERABLE) or not replays.ackers:
        return False
    slowest = sum(_pause(replays, restarts, after) for after in range(restarts.max_restarts))
    return restarts.max_restarts < replays.max_attempts and slowest < restarts.restart_window


def _pause(replays: Configuration, restarts: Configuration, after: int) -> float:
    """Seconds between two attempts: until the replay, and until there is somebody to execute it."""
    return max(
        min(replays.replay_delay * 2.0**after, replays.replay_delay_max),
        min(restarts.restart_delay * 2.0**after, restarts.restart_delay_max),
    )


def _finding(bolt: BoltSpec, restarts: int, spout: SpoutSpec, attempts: int) -> Finding:
    return Finding(
        "poison message",
        bolt.id,
        f"bolt {bolt.id!r} is restarted for each exception, at most max_restarts={restarts} times within "
        f"restart_window: a message of spout {spout.id!r} that always raises crashes the topology before its "
        f"max_attempts={attempts} are over, and never becomes a dead letter",
        f"give bolt {bolt.id!r} max_restarts={attempts} or more, spout {spout.id!r} fewer max_attempts, or raise "
        "Reject for values that cannot be processed",
    )
