"""Messages that no attempt gets through."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.cli.inspecting.checks.upstream import upstream
from stormlet.model.configuration import Configuration, configure
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind


def poison_messages(description: Description) -> Iterator[Finding]:
    """Where each failed attempt has a bolt restarted, a message with more attempts than the bolt has restarts crashes
    the topology before it becomes a dead letter (laws S6, C5)."""
    for bolt in description.bolts.values():
        if bolt.on_error != "restart":
            continue
        restarts = _options(description, bolt)
        for spout in upstream(description, bolt):
            if isinstance(spout, SpoutSpec) and _crash(restarts, _options(description, spout), spout):
                yield _finding(bolt, restarts.max_restarts, spout, _options(description, spout).max_attempts)
                break


def _crash(restarts: Configuration, replays: Configuration, spout: SpoutSpec) -> bool:
    """Whether the engine replays a message often enough, and soon enough."""
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


def _options(description: Description, component: SpoutSpec | BoltSpec) -> Configuration:
    return configure(description.configuration, component.options, repr(component.id))


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
