"""The states of bolts as the host sees them (law X3, K8)."""

from __future__ import annotations

from collections.abc import Sequence

from stormlet.core.state.committed import Committed
from stormlet.core.state.states import State
from stormlet.core.state.timers import NAME as TIMERS
from stormlet.errors import InvalidTopology
from stormlet.runtime.epochs.keeper import EpochKeeper


class HostStates:
    """The states of one run, by their names."""

    def __init__(self, topology: str, states: Sequence[State], epochs: EpochKeeper | None) -> None:
        self._topology = topology
        self._states = {each.id: each for each in states if each.id.state != TIMERS}
        self._epochs = epochs

    def look(self, bolt: str, name: str | None) -> Committed:
        """A view of one state. Raises :class:`~stormlet.errors.InvalidTopology` if there is no such state."""
        found = [
            state for id, state in self._states.items() if id.component == bolt and name in (None, id.state)
        ]
        if not found or self._epochs is None:
            raise InvalidTopology(f"topology {self._topology!r} has no {_named(bolt, name)}; {self._known()}")
        if len(found) > 1:
            names = " and ".join(repr(each.id.state) for each in found)
            raise InvalidTopology(
                f"bolt {bolt!r} of topology {self._topology!r} has the states {names}; name one of them: "
                f"running.state({bolt!r}, {found[0].id.state!r})"
            )
        return self._epochs.look(found[0])

    def _known(self) -> str:
        known = ", ".join(f"({id.component!r}, {id.state!r})" for id in self._states)
        return f"it has {known}" if known else "none of its bolts has any"


def _named(bolt: str, name: str | None) -> str:
    return f"state of a bolt {bolt!r}" if name is None else f"state {name!r} of a bolt {bolt!r}"
