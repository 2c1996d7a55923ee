"""The log of letters that failed again where no file takes them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from stormlet.core.outcomes import Failure
from stormlet.core.shortened import cut
from stormlet.report.log_fields import log_fields

logger = logging.getLogger(__name__)

Kind: TypeAlias = tuple[object, ...]

MOST_KINDS: Final = 100
"""How many kinds of failures are told apart."""
OTHERS: Final[Kind] = ()
"""All that are not."""


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
        kind = _kind(component, failure)
        if kind not in self._kinds and len(self._kinds) >= MOST_KINDS:
            kind = OTHERS
        known = self._kinds.get(kind)
        if known is not None:
            known.more += 1
            return
        fields = log_fields(self._topology, component)
        self._kinds[kind] = _Repeated(line, fields)
        logger.error("%s:%d failed again: %s", self._letters, line, cut(str(failure)), extra=fields)

    def close(self) -> None:
        """The replay is over."""
        for kind, each in self._kinds.items():
            if each.more:
                logger.error(
                    "%s: %s more failed again %s line %d; --dead-letters FILE keeps them",
                    self._letters,
                    f"{each.more:,}",
                    "in other ways, after" if kind == OTHERS else "like",
                    each.line,
                    extra=each.fields,
                )


def _kind(component: str, failure: Failure) -> Kind:
    """What makes it another failure than others."""
    return component, failure.kind, failure.component, failure.holders, type(failure.exception)
