"""Random topologies emit and settle the same on the chain of stages as in process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from stormlet import DeadLetter
from stormlet.testing import complete
from tests.spark.engine.random_topologies import CALM, WILD, Plan, plans
from tests.spark.engine.twin import Emitted, Twin, twin

FEW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def run(plan: Plan) -> Twin:
    """Run it on the chain."""
    done = twin(plan.topology(), spouts=plan.spouts, seed=plan.seed)
    assert done.differences == []
    return done


@pytest.mark.filterwarnings("ignore")
@FEW
@given(plans(CALM))
def test_where_nothing_fails_every_value_is_the_same(plan: Plan) -> None:
    """As often, from the same component, on the same stream; and every message is acked."""
    mine, theirs = run(plan), complete(plan.topology(), seed=plan.seed)
    assert mine.multiset() == Counter((e.component, e.stream, repr(e.value)) for e in theirs.emissions)
    assert sorted(mine.acked) == sorted(theirs.acked)
    assert mine.failed == theirs.failed == []


@FEW
@given(plans(WILD))
def test_where_something_fails_the_outcomes_are_the_same(plan: Plan) -> None:
    """And the values of all messages that were acked; a replay begins elsewhere, so that some come more often."""
    mine, theirs = run(plan), complete(plan.topology(), seed=plan.seed, allow_leaks=["errors"])
    if any(part.kind == "pair" for part in plan.parts):  # which messages it joins depends on their order
        assert len(mine.acked) + len(mine.failed) == len(theirs.outcomes)
        return
    assert sorted(mine.acked) == sorted(theirs.acked)
    assert sorted(mine.failed) == sorted(map(value_of, theirs.dead_letters))
    acked = {name for value in theirs.acked for name in value[0]}
    assert of_these(acked, mine.emissions) == of_these(
        acked, [(each.component, each.stream, each.value) for each in theirs.emissions]
    )
    attempts = {each.value: each.attempts for each in theirs.outcomes if each.acked}
    assert {each.value: each.attempts for each in mine.outcomes if each.acked} == attempts


def value_of(letter: DeadLetter) -> Any:
    """The value of a message that was given up."""
    return letter.value


def of_these(messages: set[str], emissions: Iterable[Emitted]) -> set[Emitted]:
    """The emissions that come from these messages alone."""
    return {each for each in emissions if messages.issuperset(each[2][0])}
