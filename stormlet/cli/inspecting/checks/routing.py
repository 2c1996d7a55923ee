"""Groupings that cannot deal, and groupings that deal to some tasks only."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.core.groupings import Fields, Global, PartialKey
from stormlet.model.description import Description, Subscription
from stormlet.model.key_types import unroutable_types


def unroutable_keys(description: Description) -> Iterator[Finding]:
    """Keys whose annotated type has no stable hash: an emit of one raises ``UnroutableKey``."""
    for bolt in description.bolts.values():
        for each in bolt.inputs:
            if isinstance(each.grouping, Fields | PartialKey):
                yield from _unroutable_key(description, bolt.id, each, each.grouping)


def _unroutable_key(
    description: Description, bolt: str, each: Subscription[object], grouping: Fields | PartialKey
) -> Iterator[Finding]:
    schema = description.components[each.source.component].outputs[each.source.stream].schema
    kinds = unroutable_types(schema, grouping)
    if kinds:
        names = " and ".join(kind.__qualname__ for kind in kinds)
        yield Finding(
            "unroutable key",
            bolt,
            f"the {grouping.name} grouping of bolt {bolt!r} on {each.source} has a key of type {names}, which has no "
            "stable hash: emitting such a value raises UnroutableKey",
            "group by other fields, or by a function that returns text, numbers or a tuple of them",
        )


def idle_tasks(description: Description) -> Iterator[Finding]:
    """A global grouping gives everything to the first task."""
    for bolt in description.bolts.values():
        if bolt.parallelism > 1 and all(isinstance(each.grouping, Global) for each in bolt.inputs):
            yield Finding(
                "idle tasks",
                bolt.id,
                f"bolt {bolt.id!r} has parallelism={bolt.parallelism}, but a global grouping gives everything to its "
                "first task: the others have nothing to do",
                "set parallelism=1, or use another grouping",
            )
