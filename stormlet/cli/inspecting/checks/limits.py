"""Limits that defeat each other."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.model.configuration import configure
from stormlet.model.description import Description
from stormlet.model.logic import SourceKind


def overflowing_ackers(description: Description) -> Iterator[Finding]:
    """Where the spouts may have more pending than the ackers take, emissions fail with OVERFLOW (law L13)."""
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
