"""Bugs of connectors and of the driver, each planted here and found by the cases that every connector must pass, or by
seeds; with more seeds: ``python -m tests.connect.planted_bugs``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

import pytest

from tests.connect import conformance as cases
from tests.connect import planted_bugs as bugs
from tests.connect.conformance import Case, TwinBench
from tests.connect.planted_bugs import SOUGHT, Plant, Sought, found_by
from tests.helpers import interpreted_only


class Bug(NamedTuple):
    name: str
    plant: Plant
    profile: str
    found_by: Sequence[Case]


BUGS: Final = [
    Bug(
        "commit before ack",
        bugs.settled_when_emitted,
        "kafka",
        [cases.case_20_others_go_on_while_one_is_stuck],
    ),
    Bug(
        "ack before work",
        bugs.settled_when_emitted,
        "jetstream",
        [cases.case_20_others_go_on_while_one_is_stuck],
    ),
    Bug("late fence", bugs.late_fence, "kafka", [cases.case_18b_partitions_are_taken_without_a_word]),
    Bug("fence first", bugs.fence_first, "kafka", [cases.case_18_partitions_go_from_one_to_another]),
    Bug(
        "ack of an old connection",
        bugs.acks_of_old_connections,
        "rabbitmq-4.0",
        [cases.case_09_an_ack_of_an_old_connection_changes_nothing],
    ),
    Bug(
        "settles twice",
        bugs.settles_twice,
        "rabbitmq-4.0",
        [cases.case_01_everything_arrives_and_is_acked_once],
    ),
    Bug(
        "cancelled reads",
        bugs.cancelled_reads,
        "rabbitmq-4.0",
        [cases.case_10_outcomes_cost_no_message_on_its_way],
    ),
    Bug(
        "cancelled reads of a log",
        bugs.cancelled_reads,
        "kafka",
        [cases.case_10_outcomes_cost_no_message_on_its_way],
    ),
    Bug(
        "forgotten commits",
        bugs.forgotten_commits,
        "kafka",
        [cases.case_21_a_commit_that_fails_is_tried_again],
    ),
    Bug("no renewals", bugs.no_renewals, "jetstream", [cases.case_17_replays_stop_when_the_lease_is_lost]),
    Bug(
        "keeps lost leases",
        bugs.keeps_lost_leases,
        "sqs",
        [cases.case_17_replays_stop_when_the_lease_is_lost],
    ),
    Bug(
        "drops the unreadable",
        bugs.drops_what_it_cannot_read,
        "redis-7",
        [cases.case_12_what_cannot_be_decoded_is_a_dead_letter],
    ),
    Bug(
        "front over open ones",
        bugs.front_over_open_ones,
        "kafka",
        [cases.case_20_others_go_on_while_one_is_stuck],
    ),
    Bug("front by plus one", bugs.front_by_plus_one, "kafka", [cases.case_19_offsets_have_gaps]),
    Bug(
        "a stop is a success",
        bugs.stop_is_a_failure,
        "jetstream",
        [cases.case_03b_a_stop_gives_back_what_nobody_has_begun],
    ),
    Bug(
        "buries twice", bugs.buries_twice, "postgres", [cases.case_11_a_poison_message_is_a_dead_letter_once]
    ),
    Bug(
        "forgets the failed",
        bugs.forgets_failed,
        "redis-7",
        [cases.case_11_a_poison_message_is_a_dead_letter_once],
    ),
    Bug(
        "ack before work, and a kill",
        bugs.settled_when_emitted,
        "kafka",
        [cases.case_02_a_process_is_killed_at_random_moments],
    ),
    Bug(
        "takes all for written",
        bugs.takes_all_for_written,
        "postgres",
        [cases.case_29_what_is_routed_nowhere_is_a_dead_letter],
    ),
    Bug("one by one", bugs.one_by_one, "redis-7", [cases.case_33_the_loop_has_little_to_do_with_a_message]),
    Bug(
        "looks all the time",
        bugs.looks_all_the_time,
        "kafka",
        [cases.case_33b_a_source_that_waits_takes_no_time],
    ),
    Bug("no bound", bugs.no_bound, "kafka", [cases.case_15_a_slow_bolt_takes_no_more_than_it_may]),
]


@interpreted_only
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case passes without it, and fails with it."""
    bench = TwinBench(bug.profile)
    for case in bug.found_by:
        bench.hold(case)
    bug.plant(monkeypatch)
    for case in bug.found_by:
        with pytest.raises((AssertionError, TimeoutError, RuntimeError)):
            bench.hold(case)


@interpreted_only
@pytest.mark.parametrize("sought", SOUGHT, ids=lambda sought: sought.plant.__name__)
def test_seeds_find_a_planted_bug(sought: Sought) -> None:
    """Within ten of them, with logs that nobody reads turned off."""
    logging.disable()
    try:
        assert found_by(sought, range(sought.first, sought.first + 10)) is not None
    finally:
        logging.disable(logging.NOTSET)
