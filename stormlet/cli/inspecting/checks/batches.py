"""Batches that wait longer than their members may."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.model.components import BatchBolt
from stormlet.model.description import Description
from stormlet.model.logic import component_class


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
