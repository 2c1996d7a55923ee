"""Folding: what other inputs of a key have left goes into the state of a bolt (law K10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from stormlet.core.state.map_table import AnyTable, MapTable
from stormlet.core.state.timers import NAME
from stormlet.core.state.value_table import ValueTable
from stormlet.model.state.keyed import KeyedBolt, attach
from stormlet.model.state.slots import Hand, hand_of, view_of


def fold(bolt: KeyedBolt[Any, Any, Any], others: Mapping[str, AnyTable]) -> None:
    """Fold the state of the key that a bolt has in hand, as other tables have it, into its own: by ``merge``, where it
    has both, else as it is."""
    hand = hand_of(bolt)
    own: Mapping[str, AnyTable] = hand.tables
    pairs = [(own[name], other) for name, other in others.items() if name != NAME]
    if any(_has(mine, hand.key) for mine, _ in pairs):
        bolt.merge(_other(bolt, hand.key, others))
        return
    for mine, other in pairs:
        copy(other, mine, hand.key)


def fold_all(
    bolt: KeyedBolt[Any, Any, Any], own: Mapping[str, AnyTable], others: Mapping[str, AnyTable]
) -> None:
    """Fold all keys of other tables into these, which the bolt takes for its own; and set the timers of both."""
    hand = attach(bolt, dict(own))
    states = [table for name, table in others.items() if name != NAME]
    for hand.key in dict.fromkeys(key for table in states for key in table.committed_keys()):
        fold(bolt, others)
    if NAME in others:
        for key in others[NAME].committed_keys():
            copy(others[NAME], own[NAME], key)


def _other(
    bolt: KeyedBolt[Any, Any, Any], key: object, tables: Mapping[str, AnyTable]
) -> KeyedBolt[Any, Any, Any]:
    view = view_of(bolt, key)
    view._hand = Hand(dict(tables), None, key)  # pyright: ignore[reportPrivateUsage]
    return view


def _has(table: AnyTable, key: object) -> bool:
    if isinstance(table, ValueTable):
        return table.get(key) is not None
    return table.length(key) > 0


def copy(source: AnyTable, target: AnyTable, key: object) -> None:
    """Copy what one table has of a key into another one of its kind."""
    if isinstance(source, ValueTable):
        cast("ValueTable", target).put(key, source.get(key))
    else:
        for inner in source.inner(key):
            cast("MapTable", target).put(key, inner, source.get(key, inner))
