"""The passes of a batch: one, or several with replays from the source.

In several passes, the first one emits all messages, and each of the others those that have failed in the one before. A
bolt is given the state that it has left then, so that all passes are one run to it. When no message is to be replayed
any more, a last pass has the bolts finish. What they emit then may fail messages whose tuples they have held: these are
replayed, and the bolts finish once more (law C2).

Nothing is handed over before the last pass. The ledger of each pass adds up by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from stormlet.core.outcomes import History
from stormlet.core.retries import ReplayPolicy
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import Statistics, TaskStatistics, of_component
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.partition import origin_of
from stormlet.spark.engine.partition.rows import Kind
from stormlet.spark.engine.passage.outputs import Leaving
from stormlet.spark.engine.passage.passage import Passage, Passed, Saved
from stormlet.spark.engine.passage.reports import Report, Totals, failures_of, messages_of, statistics_of
from stormlet.spark.engine.passage.staging import Kept
from stormlet.spark.engine.planning.numbering import ClusterPlan, Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Again: TypeAlias = Mapping[int, int]
"""By root, the attempts of messages that are emitted once more."""
PassageOf: TypeAlias = Callable[[ClusterPlan, "Again | None", int], Passage]
"""Makes the passage of this number."""


class Done(msgspec.Struct, frozen=True):
    """The end of all passes."""

    kept: Kept
    """All that they have left."""
    statistics: Statistics
    failures: Sequence[RepeatedFailure]
    given_up: Mapping[int, GivenUp]
    """By the root of each message that was given up."""
    messages: Mapping[int, int]
    """The number of messages of each spout task."""
    replayed: Again
    """The attempts of messages that were acked after more than one, among others."""


def in_one_pass(
    cluster: ClusterPlan, passage_of: PassageOf, leaving: Mapping[str, Leaving], place: Path, saved: Saved
) -> Done:
    """Run a batch whose inputs are executed again in their stages; ``saved`` are the states that it begins with."""
    passed = passage_of(cluster, None, 0).run(str(place), leaving, saved)
    replayed = dict[int, int]()
    for report in passed.reports:
        for root, attempts in report.replayed:
            replayed[root] = max(attempts, replayed.get(root, 1))
    return Done(
        passed.kept,
        statistics_of(cluster, passed.reports, passed.given_up),
        failures_of(passed.reports),
        passed.given_up,
        messages_of(cluster, passed.reports),
        replayed,
    )


class Passes:
    """Those of a batch whose messages are replayed from the source."""

    def __init__(self, cluster: ClusterPlan, passage_of: PassageOf, leaving: Mapping[str, Leaving]) -> None:
        self._cluster = cluster
        self._passage_of = passage_of
        self._leaving = leaving
        self._failed: dict[int, GivenUp] = {}
        self._attempts: dict[int, int] = {}
        self._given_up: dict[int, GivenUp] = {}
        self._fails: dict[int, int] = {}
        self._totals = Totals()

    def run(self, place: Path) -> Done:
        """Run all passes, and keep what each leaves in a folder of its own in ``place``."""
        first = passed = self._pass(self._cluster, None, Saved(), place / "0")
        kept, number, again = passed.kept, 1, self._judge(passed)
        last = msgspec.structs.replace(self._cluster, span=Span.LAST)
        cluster = self._cluster if again else last
        while True:
            saved = Saved(_states(passed.kept), passed.left.hashes, passed.left.driver)
            passed = self._pass(cluster, again, saved, place / f"{number}", number)
            kept, number, again = kept.and_also(passed.kept), number + 1, self._judge(passed)
            if not again and cluster is last:
                return self._done(kept, first.reports)
            cluster = self._cluster if again else last

    def _pass(
        self, cluster: ClusterPlan, again: Again | None, saved: Saved, place: Path, number: int = 0
    ) -> Passed:
        passed = self._passage_of(cluster, again, number).run(str(place), self._leaving, saved)
        self._totals.add(statistics_of(cluster, passed.reports, ()), failures_of(passed.reports))
        return passed

    def _judge(self, passed: Passed) -> Again:
        """Give up messages that have failed, or return their next attempts."""
        again = dict[int, int]()
        for root, each in passed.given_up.items():
            before, failure = self._failed.get(root), each.history[-1]
            policy = self._policy_of(root)
            attempts = (0 if before is None else before.attempts) + policy.counts(failure)
            history = (History() if before is None else before.history).and_also(failure)
            self._failed[root] = failed = GivenUp((root,), attempts, history)
            task = origin_of(root)[0]
            self._fails[task] = self._fails.get(task, 0) + 1
            if policy.gives_up(failure, attempts):
                self._given_up[root] = failed
            else:
                again[root] = self._attempts[root] = self._attempts.get(root, 1) + 1
        return again

    def _policy_of(self, root: int) -> ReplayPolicy:
        config = self._cluster.configurations[self._cluster.component_of(origin_of(root)[0])]
        return ReplayPolicy(config.max_attempts, config.replay_delay, config.replay_delay_max)

    def _done(self, kept: Kept, first: Sequence[Report]) -> Done:
        messages = messages_of(self._cluster, first)
        statistics = self._statistics(messages)
        return Done(kept, statistics, self._totals.failures, self._given_up, messages, self._attempts)

    def _statistics(self, messages: Mapping[int, int]) -> Statistics:
        """The counts of all passes. A message counts once, whatever its attempts."""
        components = dict(self._totals.statistics.components)
        given_up = dict[int, int]()
        for root in self._given_up:
            task = origin_of(root)[0]
            given_up[task] = given_up.get(task, 0) + 1
        for id in self._cluster.plan.description.spouts:
            emitted = [each.emitted for each in (components[id].tasks or {}).values()]
            ids = [task.task for task in self._cluster.plan.tasks[id]]
            counts = {
                task: self._of_spout(
                    count, messages.get(task, 0), given_up.get(task, 0), self._fails.get(task, 0)
                )
                for task, count in zip(ids, emitted, strict=True)
            }
            components[id] = of_component(counts)
        return Statistics(components)

    def _of_spout(self, emitted: int, messages: int, given_up: int, failed: int) -> TaskStatistics:
        return TaskStatistics(
            emitted=emitted,
            messages=messages,
            acked=messages - given_up,
            failed=failed,
            replayed=emitted - messages,
            dead_letters=given_up,
        )


def _states(kept: Kept) -> DataFrame:
    return kept.frame.where(kept.frame["kind"] == int(Kind.STATE))
