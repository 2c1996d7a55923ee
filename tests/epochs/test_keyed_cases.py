"""Every case of keyed state leaves the same in a naive model, in process and on Spark's chain of stages.

The cases are in ``tests/spark/engine/keyed_flows.py``, as tasks of Spark import their classes from there; some of them
run on Spark itself in ``tests/spark/engine/test_keyed_batch.py``.
"""

from __future__ import annotations

import pytest

from tests.engines import KeyedEngine
from tests.spark.engine.keyed_flows import CASES, IN_EPOCHS, Case, in_order

pytestmark = pytest.mark.simulated_time(allow_leaks=["errors"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [*CASES, *IN_EPOCHS], ids=str)
async def test_what_a_case_leaves(keyed_engine: KeyedEngine, case: Case) -> None:
    """The states that it says, and the messages that it gives up."""
    left = await keyed_engine.leave(case.topology(), case.epochs)
    assert in_order(left.states) == in_order(case.states)
    assert sorted(letter.value.place for letter in left.dead_letters) == list(case.given_up)
