"""The workloads that come with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormlet.bench import state, word_count
from stormlet.bench.workload import Workload

WORKLOADS: Mapping[str, Workload] = {**word_count.WORKLOADS, **state.WORKLOADS}

GROUPS: Mapping[str, Sequence[str]] = {"state": list(state.WORKLOADS)}
"""A name for several workloads, which run only when they are named."""

USUAL: Sequence[str] = list(word_count.WORKLOADS)
"""Those that run where none is named."""


def chosen(names: Sequence[str]) -> Sequence[Workload]:
    """Return the workloads of these names, in the order of the catalogue; of a group, those that can run here."""
    found = [name for each in names or USUAL for name in _members(each)]
    return [each for name, each in WORKLOADS.items() if name in found]


def _members(name: str) -> Sequence[str]:
    if name not in GROUPS:
        return [name]
    return [each for each in GROUPS[name] if WORKLOADS[each].available]
