"""States of a topology that are folded into others of it, bolt by bolt (law K10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from stormlet.core.shortened import shortened
from stormlet.core.state.commits import Append, StateId
from stormlet.core.state.map_table import AnyTable
from stormlet.core.state.states import State
from stormlet.errors import InvalidTopology, StateUnusable
from stormlet.model.description import Description
from stormlet.model.logic import component_class
from stormlet.model.state.folding import copy, fold_all
from stormlet.model.state.keyed import KeyedBolt, merges

States = Mapping[StateId, State]


def merged(description: Description, own: States, others: States) -> Sequence[Append]:
    """Fold states into these; return what has changed in them, for their store.

    Raises :class:`~stormlet.errors.InvalidTopology` for a bolt without a ``merge``, and
    :class:`~stormlet.errors.StateUnusable` for one whose ``merge`` raises.
    """
    for component in dict.fromkeys(id.component for id, state in others.items() if state.size):
        mine, theirs = _tables(own, component), _tables(others, component)
        if component in description.bolts:
            bolt = _made(description, component)
            try:
                fold_all(bolt, mine, theirs)
            except (Exception, asyncio.CancelledError, SystemExit) as error:
                raise StateUnusable(f"merge of bolt {component!r} has raised {shortened(error)}") from error
        else:  # what a broker may give again
            for name, table in theirs.items():
                for key in table.committed_keys():
                    copy(table, mine[name], key)
    return [append for state in own.values() for append in state.seal()]


def _tables(states: States, component: str) -> Mapping[str, AnyTable]:
    return {id.state: each.tables[0] for id, each in states.items() if id.component == component}


def _made(description: Description, id: str) -> KeyedBolt[Any, Any, Any]:
    logic = description.bolts[id].logic
    if not merges(component_class(logic)):
        raise InvalidTopology(
            f"bolt {id!r} has no merge, by which two states of a key become one; define merge(self, other) in its "
            f"class, or have the entries take the place of those that are there"
        )
    return cast("Callable[[], KeyedBolt[Any, Any, Any]]", logic)()
