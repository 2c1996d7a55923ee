"""One workload in a process of its own: ``python -m stormlet.bench.child NAME SIZE LOOP`` prints what it measured, as
the last line of its output."""

from __future__ import annotations

import logging
import sys
from typing import get_args

import msgspec

from stormlet.bench.catalogue import WORKLOADS
from stormlet.bench.collector import PauseMeter, Pauses
from stormlet.bench.event_loop import LOOP, LoopName
from stormlet.bench.workload import Figures


class Measured(msgspec.Struct, frozen=True):
    """What one run of a workload gave."""

    figures: Figures
    collector: Pauses


def measure(name: str, size: int) -> Measured:
    """Run a workload in this process."""
    with PauseMeter() as meter:
        figures = WORKLOADS[name].measure(size)
    return Measured(figures, meter.pauses())


def _main(name: str, size: str, loop: str) -> None:
    logging.disable(logging.WARNING)
    LOOP.set(next(each for each in get_args(LoopName) if each == loop))
    measured = measure(name, int(size))
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(measured) + b"\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
