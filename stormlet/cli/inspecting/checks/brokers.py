"""Options that do not go together with the rules of a broker, or with what a sink gathers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from stormlet.cli.inspecting.checks.finding import Finding, options_of, upstream
from stormlet.cli.units import duration
from stormlet.connect.driver.overdue import PART
from stormlet.connect.source import Source
from stormlet.core.retries import JITTER
from stormlet.model.configuration import Configuration
from stormlet.model.description import Description, SpoutSpec
from stormlet.model.traits import bolt_traits, spout_traits

MOST_COUNTED = 64
"""The pauses between attempts that are summed one by one; later ones are no longer than the last of these."""


def messages_held_too_long(description: Description) -> Iterator[Finding]:
    """Messages that may be under way for longer than their broker leaves them to one source (law R4)."""
    if not description.configuration.ackers:
        return  # which such a source refuses
    for spout, source in _sources(description):
        options, rules = options_of(description, spout), source.capabilities
        longest = longest_time(options)
        most = None if rules.most_held is None else rules.most_held * PART
        if most is not None and (longest is None or longest > most):
            took = "for ever" if longest is None else f"for {duration(longest)}"
            yield _held(
                spout, options, took, f"one that is under way for {duration(most)} is given back and comes again, as "
                "the broker would close the connection for it",
                "lower message_timeout or max_attempts, or raise the broker's limit and say so to the source",
            )  # fmt: skip
        elif rules.lease is not None and longest is not None and longest > source.settings.max_hold:
            yield _held(
                spout, options, f"for {duration(longest)}",
                f"its lease is renewed for max_hold={source.settings.max_hold:g} s only: then another source gets it",
                "raise max_hold, or lower message_timeout or max_attempts",
            )  # fmt: skip


def _held(spout: SpoutSpec, options: Configuration, took: str, but: str, advice: str) -> Finding:
    timeout = "none" if options.message_timeout is None else f"{options.message_timeout:g}"
    return Finding(
        "held too long",
        spout.id,
        f"a message of spout {spout.id!r} may be under way {took} (message_timeout={timeout}, "
        f"max_attempts={options.max_attempts}), and {but}",
        advice,
    )


def longest_time(options: Configuration) -> float | None:
    """Return the seconds that a message may take with all its attempts; None if nothing ends one."""
    if options.message_timeout is None:
        return None
    latest = options.message_timeout * (1 + 1 / (options.timeout_buckets - 1))
    pauses = options.max_attempts - 1
    counted = min(pauses, MOST_COUNTED)
    waits = [min(options.replay_delay * 2.0**each, options.replay_delay_max) for each in range(counted)]
    rest = (pauses - counted) * options.replay_delay_max
    return options.max_attempts * latest + (sum(waits) + rest) * (1 + JITTER)


def boundless_prefetch(description: Description) -> Iterator[Finding]:
    """Sources that ask their broker for everything that it has (law R5)."""
    for spout, _ in _sources(description):
        if options_of(description, spout).max_spout_pending is None:
            yield Finding(
                "boundless prefetch",
                spout.id,
                f"spout {spout.id!r} has max_spout_pending=none, so it takes whatever its broker has, and all of that "
                "comes again when a connection is lost",
                "set max_spout_pending, which is the prefetch, to what may be done twice",
            )


def small_batches(description: Description) -> Iterator[Finding]:
    """Batches that never fill, as the spouts above may not have as many messages pending (laws S3, B8)."""
    for bolt in description.bolts.values():
        least = bolt_traits(bolt.logic).least_pending * bolt.parallelism
        above = [each for each in upstream(description, bolt) if isinstance(each, SpoutSpec)]
        most = [options_of(description, each).max_spout_pending for each in above]
        if any(each is None for each in most) or any(
            spout_traits(each.source).most_pending for each in above
        ):
            continue
        pending = sum((each or 0) * spout.parallelism for each, spout in zip(most, above, strict=True))
        if pending < least:
            yield Finding(
                "small batches",
                bolt.id,
                f"bolt {bolt.id!r} gathers {least:,} values in all its tasks, but no more than {pending:,} messages "
                "may be pending above it: its batches are smaller",
                "raise max_spout_pending, or leave it out, as it then is as large as the bolt needs",
            )


def _sources(description: Description) -> Iterator[tuple[SpoutSpec, Source[object]]]:
    for spout in description.spouts.values():
        if _is_source(spout.source):
            yield spout, spout.source


def _is_source(source: object) -> TypeGuard[Source[object]]:
    return isinstance(source, Source)
