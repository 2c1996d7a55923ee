"""The ``bench`` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from stormlet.bench.report import all_names, as_json, measure, text
from stormlet.errors import TargetError


def bench(names: Sequence[str], *, rounds: int, scale: float, json: bool) -> int:
    """Measure and print; raises :class:`TargetError` for a workload that does not exist."""
    known = all_names()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise TargetError(f"there is no workload {unknown[0]!r}; there are {', '.join(known)}")
    results = measure(names or known, rounds, scale)
    sys.stdout.write((as_json(results) if json else text(results, rounds)) + "\n")
    return 0
