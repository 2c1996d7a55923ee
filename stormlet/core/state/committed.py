"""A view of one state for those outside: what is durable, and nothing later (law X3, K8).

Between the end of an epoch and the moment at which it is durable its values are in the tables already. For that time a
state that somebody looks at remembers what they were before (:meth:`~stormlet.core.state.states.State.remember`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stormlet.core.shortened import counted
from stormlet.core.state.states import State


class Committed(Mapping[Any, Any]):
    """The durable entries of a state, by their keys: a map of a key is a dict, a list is a list.

    It is a view: it goes on with each epoch that becomes durable. What it returns may be changed without any effect on
    the state.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def __getitem__(self, key: Any) -> Any:
        value = self._found(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self._found(key) is not None

    def __iter__(self) -> Iterator[Any]:
        return (key for key in self._keys() if self._found(key) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<state {self._state.id} of {counted(self._state.size, 'entry', 'entries')}>"

    def _found(self, key: Any) -> Any:
        before = self._state.before
        return before[key] if key in before else self._state.committed(key)

    def _keys(self) -> Iterator[Any]:
        unseen = dict(self._state.before)
        for key in self._state.committed_keys():
            unseen.pop(key, None)
            yield key
        yield from unseen
