"""The topologies that one page shows, by their ids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count

from stormlet.runtime.run.handle import Running
from stormlet.ui.answers import NotFound
from stormlet.ui.watched import Watched


class Registry:
    """Any number of topologies; two may have the same name."""

    def __init__(self) -> None:
        self._shown: dict[str, Watched] = {}

    def add(self, running: Running, origins: Mapping[str, str] | None = None) -> Watched:
        """Show one more."""
        watched = Watched(self._free_id(running.plan.description.name), running, origins)
        self._shown[watched.id] = watched
        return watched

    def remove(self, watched: Watched) -> None:
        """Show it no more."""
        self._shown.pop(watched.id, None)

    def all(self) -> list[Watched]:
        """Return them as they came."""
        return list(self._shown.values())

    def get(self, id: str) -> Watched:
        """Return the one of this id; raise :class:`NotFound`."""
        if id in self._shown:
            return self._shown[id]
        known = ", ".join(self._shown)
        raise NotFound(f"there is no topology {id!r}; {f'there are {known}' if known else 'none is running'}")

    def _free_id(self, name: str) -> str:
        """Return a name as it may stand in an address, with a number if it is taken."""
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "topology"
        numbered = (plain if number == 1 else f"{plain}-{number}" for number in count(1))
        return next(id for id in numbered if id not in self._shown)
