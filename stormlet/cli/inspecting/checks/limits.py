"""Limits that defeat each other, and batches that wait longer than their members may."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.model.components import BatchBolt
from stormlet.model.configuration import configure
from stormlet.model.description import Description
from stormlet.model.logic import SourceKind, component_class


def overflowing_ackers(description: Description) -> Iterator[Finding]:
    """Spouts that may have more pending than the ackers take: emissions fail with OVERFLOW then (law L13)."""
    configuration = description.configuration
    if configuration.acker_high_water is None or not configuration.ackers:
        return
    room = 2 * configuration.acker_high_water * configuration.ackers
    pending = 0
    for spout in description.spouts.values():
        most = configure(configuration, spout.options, repr(spout.id)).max_spout_pending
        if most is None:
            return  # that is a choice, and the high water is what guards it
        pending += most * spout.parallelism
    if pending > room:
        yield Finding(
            "high water",
            None,
            f"the spouts may have {pending:,} messages pending, but acker_high_water={configuration.acker_high_water} "
            f"gives {room:,} trees room: the others fail with OVERFLOW",
            "raise acker_high_water, leave it out, or lower max_spout_pending",
        )


def replays_after_the_drain(description: Description) -> Iterator[Finding]:
    """A message that waits for its replay longer than a drain lasts is left over (law C3). Without ackers there are
    no replays (law L9)."""
    drain = description.configuration.drain_timeout if description.configuration.ackers else None
    for spout in description.spouts.values():
        options = configure(description.configuration, spout.options, repr(spout.id))
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
