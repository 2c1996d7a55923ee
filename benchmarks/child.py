"""One workload in a process of its own: ``python -m benchmarks.child NAME SIZE LOOP``."""

from __future__ import annotations

import sys

from benchmarks.catalogue import WORKLOADS
from stormlet.bench.rounds import print_measured

if __name__ == "__main__":
    print_measured(WORKLOADS, *sys.argv[1:])
