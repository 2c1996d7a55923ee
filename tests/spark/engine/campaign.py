"""Runs random topologies on Spark and in process, and tells of those that differ.

::

    python -m tests.spark.engine.campaign --seeds 500
    python -m tests.spark.engine.campaign --seeds 1 --first 137   # that one again

All share one session with the cores of this machine. The exit code is 1 if any differed.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings

from stormlet.spark import run_on_spark, spark_session
from stormlet.testing import complete
from tests.spark.engine.random_topologies import CALM, WILD, Plan, Seen, plans
from tests.spark.engine.twin import Emitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRAWN = 6
"""Plans that a seed draws, of which the last one counts: the first ones are small."""


@dataclass(frozen=True)
class Ran:
    """What came of one run."""

    seen: Sequence[Emitted]
    """All emissions, those of failed attempts included where they were delivered."""
    given_up: Counter[object]
    """The spouts and values of the messages that were given up."""
    messages: int


def plan_of(number: int) -> Plan:
    """The topology of a seed: of an even one nothing fails, of an odd one some messages do."""
    drawn = list[Plan]()

    @seed(number)
    @settings(
        max_examples=DRAWN, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @given(plans(WILD if number % 2 else CALM))
    def draw(plan: Plan) -> None:
        drawn.append(plan)

    draw()
    return drawn[-1]


def on_spark(plan: Plan, spark: SparkSession) -> Ran:
    """Run it as a batch."""
    with Seen.noted() as seen:
        result = run_on_spark(plan.topology(watched=True), spark, seed=plan.seed)
    given_up = Counter[object]((each.component, each.value) for each in result.dead_letters)
    return Ran(seen, given_up, result.messages)


def in_process(plan: Plan) -> Ran:
    """Run it on simulated time."""
    with Seen.noted() as seen:
        done = complete(plan.topology(watched=True), seed=plan.seed, allow_leaks=True)
    given_up = Counter[object]((each.component, each.value) for each in done.dead_letters)
    return Ran(seen, given_up, len(done.outcomes))


def differences(plan: Plan, mine: Ran, theirs: Ran) -> Iterator[str]:
    """What the two runs do not agree on."""
    if mine.messages != theirs.messages:
        yield f"{mine.messages} messages, not {theirs.messages}"
    if any(part.kind == "pair" for part in plan.parts):  # which messages it joins depends on their order
        return
    if mine.given_up != theirs.given_up:
        yield f"given up: {mine.given_up}, not {theirs.given_up}"
    failed = {name for _, value in theirs.given_up for name in value[0]}  # type: ignore[misc]
    if failed or any(part.kind in ("flaky", "choosy") for part in plan.parts):
        # A replay begins elsewhere, so that some values come more often.
        here, there = (dict.fromkeys(_beyond(failed, each.seen), 1) for each in (mine, theirs))
    else:
        here, there = (Counter(map(_shown, each.seen)) for each in (mine, theirs))
    if here != there:
        only = [*(here.keys() ^ there.keys()), *(each for each in here if here[each] != there.get(each))]
        yield f"emissions differ: {sorted(set(only))[:5]}"


def _beyond(failed: set[str], emissions: Sequence[Emitted]) -> Iterator[str]:
    return (_shown(each) for each in emissions if failed.isdisjoint(each[2][0]))


def _shown(emission: Emitted) -> str:
    return repr(emission)


def compared(number: int, spark: SparkSession) -> Sequence[str]:
    """Run the topology of a seed both ways; give what differs, in words."""
    plan = plan_of(number)
    try:
        return [*differences(plan, on_spark(plan, spark), in_process(plan))]
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.engine.campaign", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many (default: 500)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--cores", type=int, default=2, help="of the session (default: 2)")
    options = parser.parse_args(arguments)
    logging.disable(logging.ERROR)  # of dead letters there are thousands
    spark = spark_session(f"local[{options.cores}]")
    began, differed = time.monotonic(), 0
    try:
        for number in range(options.first, options.first + options.seeds):
            for line in compared(number, spark):
                print(f"seed {number}: {line}", flush=True)
                differed += 1
    finally:
        spark.stop()
    print(f"{options.seeds} topologies in {time.monotonic() - began:,.0f} s: {differed} differences")
    return int(bool(differed))


if __name__ == "__main__":
    sys.exit(main())
