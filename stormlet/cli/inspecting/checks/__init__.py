"""The rules of ``check``: each is a function from a description to what it finds, one file for each matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stormlet.cli.inspecting.checks.factories import dropped_results, mistaken_factories
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.cli.inspecting.checks.limits import (
    batches_slower_than_the_timeout,
    overflowing_ackers,
    replays_after_the_drain,
)
from stormlet.cli.inspecting.checks.tracking import (
    poison_messages,
    unacked_inputs,
    unanchored_outputs,
    unowned_outputs,
    untracked_messages,
)
from stormlet.cli.inspecting.checks.wiring import (
    cycles,
    idle_tasks,
    unheard_spouts,
    unroutable_keys,
    unused_streams,
)
from stormlet.model.description import Description

RULES: tuple[Callable[[Description], Iterator[Finding]], ...] = (
    cycles,
    unheard_spouts,
    unused_streams,
    idle_tasks,
    unroutable_keys,
    untracked_messages,
    mistaken_factories,
    dropped_results,
    unacked_inputs,
    unanchored_outputs,
    unowned_outputs,
    batches_slower_than_the_timeout,
    overflowing_ackers,
    replays_after_the_drain,
    poison_messages,
)


def findings(description: Description) -> list[Finding]:
    """Everything in the topology that is allowed and probably not meant. Nothing is run; the source of classes
    is read."""
    return [finding for rule in RULES for finding in rule(description)]
