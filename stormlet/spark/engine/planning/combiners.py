"""Combiners: inputs with equal keys that become one before an exchange.

A bolt class that has a static method ``merge(one, other)`` says that two inputs with equal keys are as good to it as
the one that ``merge`` makes of them. Then inputs that come by ``fields`` or ``partial_key`` are
merged before an exchange, and one tuple is sent for each key in the place of thousands.

Of a bolt with keyed state ``merge(self, other)`` makes one of two *states* (law K10). Its inputs are executed before
the exchange, and the states merged behind it, unless that could be seen: :func:`unfolded` has the reasons
(:mod:`stormlet.spark.engine.partition.keyed.folding`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import msgspec

from stormlet.core.groupings import Fields, Grouping, KeyFunction, PartialKey
from stormlet.model.components import overrides
from stormlet.model.description import BoltSpec, Description
from stormlet.model.logic import component_class
from stormlet.model.signatures import can_be_called
from stormlet.model.state.keyed import KeyedBolt, merges


class Combiner(msgspec.Struct, frozen=True):
    """The rule by which values on one way are merged."""

    key: KeyFunction | None
    """None: the value is the key."""
    merge: Callable[[Any, Any], Any]

    def key_of(self, value: Any) -> Any:
        """Return the key of a value."""
        return value if self.key is None else self.key(value)


def combiner_of(bolt: BoltSpec, grouping: Grouping) -> Combiner | None:
    """Return the combiner for what a bolt takes by this grouping; None if each value goes by itself, or the bolt has
    keyed state."""
    merge = merge_of(bolt)
    if merge is None or not isinstance(grouping, Fields | PartialKey):
        return None
    return Combiner(grouping.key, merge)


def merge_of(bolt: BoltSpec) -> Callable[[Any, Any], Any] | None:
    """Return the ``merge`` of a bolt's class that is for inputs; None if it has none."""
    return None if bolt.keyed else getattr(component_class(bolt.logic), "merge", None)


def takes_two(merge: Callable[[Any, Any], Any]) -> bool:
    """Return True if it can be called with two inputs."""
    return callable(merge) and can_be_called(merge, None, None)


def folds(bolt: BoltSpec, description: Description) -> bool:
    """Return True if the inputs of a keyed bolt are executed before the exchange."""
    return bolt.keyed and merges(component_class(bolt.logic)) and unfolded(bolt, description) is None


def unfolded(bolt: BoltSpec, description: Description) -> str | None:
    """Return the reason why those of a keyed bolt with a ``merge`` go one by one; None if they do not."""
    made = cast("type[KeyedBolt[Any, Any, Any]]", component_class(bolt.logic))
    takes = [
        id
        for id, each in description.bolts.items()
        if any(of.source.component == bolt.id for of in each.inputs)
    ]
    if takes:
        return f"{takes[0]!r} takes what it emits for each of them"
    if inspect.iscoroutinefunction(made.execute):
        return "its execute is asynchronous"
    own = [name for name in ("on_timer", "prepare") if overrides(made, KeyedBolt, name)]
    return f"it has {own[0]}, which is for its tasks alone" if own else None
