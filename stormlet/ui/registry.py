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
        name = running.plan.description.name
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "topology"
        ending = self._free_ending(plain)
        watched = Watched(plain + ending, running, origins, label=name + ending)
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

    def _free_ending(self, plain: str) -> str:
        """Return the number by which another topology of this name is told apart; none for the first."""
        endings = ("" if number == 1 else f"-{number}" for number in count(1))
        return next(each for each in endings if plain + each not in self._shown)
