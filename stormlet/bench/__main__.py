"""One workload in a process of its own: ``python -m stormlet.bench NAME SIZE LOOP``."""

from __future__ import annotations

import sys

from stormlet.bench.catalogue import WORKLOADS
from stormlet.bench.rounds import print_measured

if __name__ == "__main__":
    print_measured(WORKLOADS, *sys.argv[1:])
