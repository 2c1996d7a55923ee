"""``python -m tests.mutants``: show that the tests notice each of the known breakages."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from time import monotonic

from tests.mutants.mutants import Mutant, rooms
from tests.mutants.runner import Copy, Result

PASSES = (Result.CAUGHT, Result.SKIPPED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen mutants; return 0 if all were caught, 1 if not, 2 if tests fail without a mutant."""
    options = _parser().parse_args(arguments)
    unknown = _unknown(options.room, options.id)
    if unknown:
        print(f"there is no {', '.join(map(repr, unknown))}", file=sys.stderr)
        return 2
    chosen = _chosen(options.room, options.id, fast=options.fast)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Copy(Path(folder, str(number))) for number in range(options.jobs)]
        return _all(chosen, copies)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--room", action="append", default=[], help="mutants of this file alone; may be repeated"
    )
    parser.add_argument("--id", action="append", default=[], help="this mutant alone; may be repeated")
    parser.add_argument("--fast", action="store_true", help="leave out the mutants that are marked slow")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default: 1)")
    return parser


def _unknown(names: Sequence[str], ids: Sequence[str]) -> list[str]:
    known = rooms()
    mutants = {each.id for room in known.values() for each in room}
    return [*(name for name in names if name not in known), *(id for id in ids if id not in mutants)]


def _chosen(names: Sequence[str], ids: Sequence[str], *, fast: bool) -> dict[str, list[Mutant]]:
    chosen = {
        room: [each for each in mutants if (not ids or each.id in ids) and not (fast and each.slow)]
        for room, mutants in rooms().items()
        if not names or room in names
    }
    return {room: mutants for room, mutants in chosen.items() if mutants}


def _all(chosen: dict[str, list[Mutant]], copies: Sequence[Copy]) -> int:
    began, results = monotonic(), Counter[Result]()
    for room, mutants in chosen.items():
        baseline = copies[0].baseline(mutants)
        if baseline.result is not Result.SURVIVED and baseline.result is not Result.SKIPPED:
            print(f"{baseline.output}\n{room}: these tests do not pass without any mutant")
            return 2
        results.update(_room(mutants, copies))
    counts = ", ".join(f"{count} {result.value}" for result, count in results.items())
    print(f"{results.total()} mutants in {monotonic() - began:.0f} s on {len(copies)} at a time: {counts}")
    return 0 if all(result in PASSES for result in results) else 1


def _room(mutants: Sequence[Mutant], copies: Sequence[Copy]) -> list[Result]:
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def one(mutant: Mutant) -> Result:
        copy, began = free.get(), monotonic()
        try:
            result, output = copy.result(mutant)
        finally:
            free.put(copy)
        print(f"{result.value:<16}{monotonic() - began:6.1f} s  {mutant.id}: {mutant.breaks}", flush=True)
        if result not in PASSES:
            print(output, flush=True)
        return result

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(one, mutants))


if __name__ == "__main__":
    raise SystemExit(main())
