"""Runs of twins with faults by seeds, as many as time allows: ``python -m tests.connect.seeds --seconds 3600``.

One seed is one run for each profile. A run that fails is named, with its error, and is repeated by
``python -m tests.connect.seeds --profile kafka --first 417 --seeds 1``. The exit code is 1 if any has failed.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from itertools import count

from stormlet.testing.brokers import PROFILES
from tests.connect.conformance import TwinBench
from tests.connect.troubles import trouble


def run(profile: str, seed: int, patience: float = 6000.0) -> str | None:
    """Run one seed on one profile. Returns the error, with its traceback."""
    bench = TwinBench(profile)
    bench.begin()
    try:
        bench.run(lambda: trouble(bench, seed, patience))
    except Exception:
        return traceback.format_exc()
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run seeds, and say how many and which have failed."""
    parser = argparse.ArgumentParser(description="Runs of twins with faults by seeds.")
    parser.add_argument("--profile", action="append", choices=list(PROFILES), help="all of them by default")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, help="without end by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="no seed begins later")
    given = parser.parse_args(arguments)
    logging.disable()
    ends = time.monotonic() + given.seconds
    profiles, runs, failed = given.profile or list(PROFILES), 0, list[str]()
    for seed in count(given.first) if given.seeds is None else range(given.first, given.first + given.seeds):
        if time.monotonic() > ends:
            break
        for profile in profiles:
            error, runs = run(profile, seed), runs + 1
            if error is not None:
                failed.append(f"{profile} {seed}")
                print(f"{failed[-1]}: {error}", flush=True)
        if seed % 100 == 99:
            print(f"{seed + 1:,} seeds, {runs:,} runs, {len(failed)} failed", flush=True)
    print(f"{runs:,} runs, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
