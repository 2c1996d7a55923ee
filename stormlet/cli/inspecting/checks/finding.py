"""Findings of ``check``, and the components that feed a bolt."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

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


def upstream(description: Description, bolt: BoltSpec) -> Iterator[SpoutSpec | BoltSpec]:
    """The components above this one, nearest first, those of a cycle included."""
    ways, seen = [bolt], set[str]()
    for way in ways:  # grows
        for subscription in way.inputs:
            id = subscription.source.component
            if id not in seen:
                seen.add(id)
                component = description.components[id]
                if isinstance(component, BoltSpec):
                    ways.append(component)
                yield component
