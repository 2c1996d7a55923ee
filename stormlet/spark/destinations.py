"""The places that the exactly-once sinks of a run write to, as its source keeps them."""

from __future__ import annotations

from stormlet.errors import InvalidTopology


class Destinations:
    """The places of all sinks. The tasks of a run share one, ``context.shared.one(Destinations)``."""

    def __init__(self) -> None:
        self._by_component: dict[str, str] = {}

    def check(self, component: str, place: str) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` if another sink writes to the same place."""
        for other, its in self._by_component.items():
            if other != component and its == place:
                raise InvalidTopology(
                    f"bolts {other!r} and {component!r} both write exactly once to {place}, and would replace each "
                    f"other's rows; give each a path of its own, or let one bolt consume both streams"
                )

    def add(self, component: str, place: str) -> None:
        """Note the place of a sink, in words that are the same in every process."""
        self._by_component[component] = place

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, in order."""
        return tuple(sorted(self._by_component.values()))
