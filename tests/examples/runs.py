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


RunExample: TypeAlias = Callable[..., Outcome]
