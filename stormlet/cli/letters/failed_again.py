"""The log of letters that failed again where no file takes them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from stormlet.core.log_fields import log_fields
from stormlet.core.outcomes import Failure
from stormlet.core.shortened import cut

logger = logging.getLogger(__name__)

Kind: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class _Repeated:
    line: int
    """The first one of its kind."""
    fields: dict[str, object]
    more: int = 0


class FailedAgain:
    """Tells the first letter of each kind of failure at once, and at the end how many others were like it."""

    def __init__(self, topology: str, letters: Path) -> None:
        self._topology = topology
        self._letters = letters
        self._kinds: dict[Kind, _Repeated] = {}

    def add(self, line: int, component: str, failure: Failure) -> None:
        """The letter in this line, of this spout, has failed again."""
        known = self._kinds.get(_kind(component, failure))
        if known is not None:
            known.more += 1
            return
        fields = log_fields(self._topology, component)
        self._kinds[_kind(component, failure)] = _Repeated(line, fields)
        logger.error("%s:%d failed again: %s", self._letters, line, cut(str(failure)), extra=fields)

    def close(self) -> None:
        """The replay is over."""
        for each in self._kinds.values():
            if each.more:
                logger.error(
                    "%s: %s more failed again like line %d; --dead-letters FILE keeps them",
                    self._letters,
                    f"{each.more:,}",
                    each.line,
                    extra=each.fields,
                )


def _kind(component: str, failure: Failure) -> Kind:
    """What makes it another failure than others."""
    return component, failure.kind, failure.component, failure.holders, type(failure.exception)
