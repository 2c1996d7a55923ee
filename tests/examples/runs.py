"""What a run of an example leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Outcome:
    """The exit code, what was printed, and the rest."""

    code: int
    lines: list[str]
    summary: str

    def acked(self, spout: str) -> tuple[str, str, str]:
        """What the summary says of a spout: emitted, acked, failed."""
        row = next(line.split() for line in self.summary.splitlines() if line.startswith(f"{spout} "))
        return row[1], row[2], row[3]


RunExample: TypeAlias = Callable[..., Outcome]
