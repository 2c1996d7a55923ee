"""What feeds a bolt."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.model.description import BoltSpec, Description, SpoutSpec


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
