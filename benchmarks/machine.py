"""The machine and the versions that something was measured with."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from benchmarks.catalogue import PEERS, WORKLOADS
from stormlet.acceleration import is_compiled
from stormlet.bench.workload import LoopName


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of figures."""

    date: str
    """The day, as ISO 8601 has it."""
    python: str
    processor: str
    cores: int
    system: str
    loop: str
    """The event loop, with its version if it is uvloop."""
    stormlet: str
    compiled: bool
    packages: dict[str, str]
    """Package -> version, of those that were measured or used."""
    missing: dict[str, str]
    """Peer that is not installed -> the command that installs it."""

    def __str__(self) -> str:
        kind = "compiled" if self.compiled else "interpreted"
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        return (
            f"{_day(self.date)}, stormlet {self.stormlet} {kind}, {self.python}, {self.loop}, {packages}, "
            f"{self.cores} cores of {self.processor}, {self.system}, default garbage collector"
        )


def describe(names: Sequence[str], loop: LoopName) -> Machine:
    """This machine, and what is needed to run these workloads."""
    used = {WORKLOADS[name].needs for name in names} - {"", "resource"}
    return Machine(
        date=date.today().isoformat(),
        python=f"{platform.python_implementation()} {platform.python_version()}{_build()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        system=platform.platform(terse=True),
        loop=loop if loop == "asyncio" else f"uvloop {_version('uvloop')}",
        stormlet=_version("stormlet"),
        compiled=is_compiled(),
        packages={name: _version(name) for name in ("msgspec", *sorted(used))},
        missing={peer: f"pip install {peer}" for peer in missing_peers()},
    )


def missing_peers() -> Sequence[str]:
    """The peers that are not installed."""
    needs = {each.needs for each in WORKLOADS.values() if each.kind == "peer" and not each.available}
    return [peer for peer, package in PEERS.items() if package in needs]


def _build() -> str:
    return "" if getattr(sys, "_is_gil_enabled", lambda: True)() else " free-threaded"


def _day(iso: str) -> str:
    day = date.fromisoformat(iso)
    return f"{day.day} {day:%B %Y}"


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of an unknown version"
