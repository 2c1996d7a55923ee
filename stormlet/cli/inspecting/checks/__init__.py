"""The rules of ``check``: each is a function from a description to what it finds, one file for each matter.

::

    finding    a finding, and what several rules ask of a component
    wiring     streams that lead in circles or nowhere, and groupings that reach no task or only some
    code       code that loses messages, seen in the source of components
    limits     options that defeat each other
    brokers    options that do not go together with the rules of a broker
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stormlet.cli.inspecting.checks import brokers, code, limits, wiring
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.model.description import Description

RULES: tuple[Callable[[Description], Iterator[Finding]], ...] = (
    wiring.cycles,
    wiring.unheard_spouts,
    wiring.unused_streams,
    wiring.idle_tasks,
    wiring.unroutable_keys,
    limits.untracked_messages,
    code.mistaken_factories,
    code.dropped_results,
    code.unacked_inputs,
    code.unanchored_outputs,
    code.unowned_outputs,
    limits.batches_slower_than_the_timeout,
    limits.overflowing_ackers,
    limits.replays_after_the_drain,
    limits.poison_messages,
    brokers.messages_held_too_long,
    brokers.boundless_prefetch,
    brokers.small_batches,
)


def findings(description: Description) -> list[Finding]:
    """Everything in the topology that is allowed and probably not meant. Nothing is run; the source of classes
    is read."""
    return [finding for rule in RULES for finding in rule(description)]
