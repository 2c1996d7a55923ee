"""The CPU time and the memory of this process and of all that it has started, where the system is Linux."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")


def cpu_seconds() -> float:
    """The CPU time of the whole tree so far, of children that have ended, too."""
    ticks = os.sysconf("SC_CLK_TCK")
    return sum(sum(map(int, fields[11:15])) for fields in _tree().values()) / ticks


def children_peak_mib(name: str) -> float:
    """The most that any living process of the tree below this one was ever resident, of those whose name begins so."""
    peaks = [
        _peak_mib(process)
        for process in _tree()
        if process != os.getpid() and _name(process).startswith(name)
    ]
    return max(peaks, default=0.0)


def _tree() -> Mapping[int, list[str]]:
    """The fields of each process in ``/proc/.../stat``, from its state on."""
    found = dict(_stats())
    below: dict[int, list[int]] = {}
    for process, fields in found.items():
        below.setdefault(int(fields[1]), []).append(process)
    tree, left = dict[int, list[str]](), [os.getpid()]
    while left:
        process = left.pop()
        tree[process] = found[process]
        left += below.get(process, [])
    return tree


def _stats() -> Iterator[tuple[int, list[str]]]:
    for place in PROC.glob("[0-9]*"):
        try:
            text = (place / "stat").read_text("utf-8", "replace")
        except OSError:  # it has ended meanwhile
            continue
        yield int(place.name), text.rpartition(")")[2].split()


def _name(process: int) -> str:
    try:
        return (PROC / str(process) / "comm").read_text("utf-8", "replace")
    except OSError:
        return ""


def _peak_mib(process: int) -> float:
    try:
        lines = (PROC / str(process) / "status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)
