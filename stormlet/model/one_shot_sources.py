"""Sources that serve one run only, as they cannot start again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

from stormlet.errors import InvalidTopology
from stormlet.model.description import SpoutSpec
from stormlet.model.logic import SourceKind


class OneShotSources:
    """The iterators that runs of one topology have used."""

    def __init__(self) -> None:
        self._used: list[object] = []

    def use(self, spouts: Iterable[SpoutSpec]) -> None:
        """Note the sources of a run that begins; raise :class:`~stormlet.errors.InvalidTopology` for an iterator that
        an earlier run has used."""
        for spec in spouts:
            if spec.kind is SourceKind.ITERABLE and _is_one_shot(spec.source):
                if any(spec.source is each for each in self._used):
                    raise InvalidTopology(
                        f"spout {spec.id!r}: its iterator was used by an earlier run and cannot start again; "
                        f"pass a generator function or a list"
                    )
                self._used.append(spec.source)


def _is_one_shot(source: object) -> bool:
    return isinstance(source, Iterator | AsyncIterator)
