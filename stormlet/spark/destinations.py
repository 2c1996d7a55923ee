"""The places that the exactly-once sinks of a run write to, as its source keeps them."""

from __future__ import annotations


class Destinations:
    """The places of all sinks. The tasks of a run share one, ``context.shared.one(Destinations)``."""

    def __init__(self) -> None:
        self._by_component: dict[str, str] = {}

    def add(self, component: str, place: str) -> None:
        """Note the place of a sink, in words that are the same in every process."""
        self._by_component[component] = place

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, in order."""
        return tuple(sorted(self._by_component.values()))
