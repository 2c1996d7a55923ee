"""Findings of ``check``, and what several rules ask of a component: its options, and the components that feed it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stormlet.model.configuration import Configuration, configure
from stormlet.model.description import BoltSpec, Description, SpoutSpec


class Finding(msgspec.Struct, frozen=True):
    """Something that is allowed, and probably not meant."""

    rule: str
    """Its kind, such as ``"cycle"``: always the same words for the same rule."""
    component: str | None
    """The component that it is about; None for the topology as a whole."""
    problem: str
    """The fact, and its consequence."""
    advice: str
    """The way out."""


def options_of(description: Description, component: SpoutSpec | BoltSpec) -> Configuration:
    """The options of the topology with the component's own laid over."""
    return configure(description.configuration, component.options, repr(component.id))


def upstream(description: Description, *bolts: BoltSpec) -> Iterator[SpoutSpec | BoltSpec]:
    """The components above these, nearest first, those of a cycle included."""
    ways, seen = [*bolts], set[str]()
    for way in ways:  # grows
        for subscription in way.inputs:
            id = subscription.source.component
            if id not in seen:
                seen.add(id)
                component = description.components[id]
                if isinstance(component, BoltSpec):
                    ways.append(component)
                yield component
