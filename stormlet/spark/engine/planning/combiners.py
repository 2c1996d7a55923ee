"""Combiners: bolts that may get one input in the place of several with equal keys.

A bolt class that has a static method ``merge(one, other)`` says that two inputs with equal keys are as good to it as
the one that ``merge`` makes of them. Then inputs that come by ``fields`` or ``partial_key`` are
merged before an exchange, and one tuple is sent for each key in the place of thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from stormlet.core.groupings import Fields, Grouping, KeyFunction, PartialKey
from stormlet.model.description import BoltSpec
from stormlet.model.logic import component_class
from stormlet.model.signatures import can_be_called


class Combiner(msgspec.Struct, frozen=True):
    """The rule by which values on one way are merged."""

    key: KeyFunction | None
    """None: the value is the key."""
    merge: Callable[[Any, Any], Any]

    def key_of(self, value: Any) -> Any:
        """Return the key of a value."""
        return value if self.key is None else self.key(value)


def combiner_of(bolt: BoltSpec, grouping: Grouping) -> Combiner | None:
    """Return the combiner for what a bolt takes by this grouping; None if each value goes by itself."""
    merge = merge_of(bolt)
    if merge is None or not isinstance(grouping, Fields | PartialKey):
        return None
    return Combiner(grouping.key, merge)


def merge_of(bolt: BoltSpec) -> Callable[[Any, Any], Any] | None:
    """Return the ``merge`` of a bolt's class; None if it has none."""
    return getattr(component_class(bolt.logic), "merge", None)


def takes_two(merge: Callable[[Any, Any], Any]) -> bool:
    """Return True if it can be called with two inputs."""
    return callable(merge) and can_be_called(merge, None, None)
