"""What the oracle allows and what it does not, on trees made by hand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from stormlet import Failure, FailureKind
from stormlet.testing.chaos import oracle
from stormlet.testing.chaos.oracle import Fate, Oracle, StoredTree

OPEN, ACKED, FAILED, LOST = Fate.OPEN, Fate.ACKED, Fate.FAILED, Fate.LOST
NOT_YET, AFTER_ALL = 9.0, 16.0
TIMEOUT = Failure(FailureKind.TIMEOUT, holders=("bolt",))
HELD_BY_NOBODY = Failure(FailureKind.TIMEOUT)
SAID = Failure(FailureKind.FAILED, "bolt", 3)
DIED = Failure(FailureKind.TASK_LOST, "bolt", 3)


class Fates(StoredTree[Fate]):
    """A tree whose copies are no more than their fates."""

    def fate(self, copy: Fate) -> Fate:
        return copy


def judged(
    copies: list[Fate],
    *outcomes: Failure | None,
    at: float | None = 12.0,
    restarts: tuple[float, ...] = (),
    under_way: bool = False,
    extended: bool = False,
) -> list[str]:
    """The violations of a tree that began at 0 and has these outcomes, where the timeout is between 10 and 15 s."""
    violations: list[str] = []
    judge = Oracle(lambda text, *values: violations.append(text.format(*values)))
    judge.timeout, judge.latest = 10.0, 15.0
    tree = Fates("tree", 0.0, copies, list(restarts))
    for outcome in outcomes:
        judge.judge(tree, outcome, at, under_way=under_way, extended=extended)
    return violations


@pytest.mark.parametrize(
    ("copies", "outcome"),
    [
        ([], None),
        ([ACKED, ACKED], None),
        ([ACKED, OPEN, FAILED], SAID),
        ([LOST, ACKED], DIED),
        ([OPEN], Failure(FailureKind.TASK_LOST, reason="an acker died")),
        ([ACKED, OPEN], TIMEOUT),
        ([OPEN], Failure(FailureKind.SHUTDOWN)),
    ],
)
def test_the_outcome_that_a_tree_deserves(copies: list[Fate], outcome: Failure | None) -> None:
    """Nothing is said of it."""
    assert judged(copies, outcome) == []


@pytest.mark.parametrize(
    ("copies", "outcome", "violation"),
    [
        ([ACKED, OPEN], None, "tree was acked although Fate.OPEN was not"),
        ([ACKED, FAILED], None, "tree was acked although Fate.FAILED was not"),
        ([LOST], None, "tree was acked although Fate.LOST was not"),
        ([ACKED, OPEN], SAID, "tree failed although no tuple of it did"),
        ([ACKED, FAILED], DIED, "tree is lost although no tuple of it was"),
        ([ACKED, ACKED], TIMEOUT, "tree timed out although nobody had a tuple of it"),
        ([OPEN], HELD_BY_NOBODY, "tree timed out although nobody had a tuple of it"),
    ],
)
def test_an_outcome_that_a_tree_does_not_deserve(
    copies: list[Fate], outcome: Failure | None, violation: str
) -> None:
    """It is named with what speaks against it."""
    assert [text.partition(":")[0] for text in judged(copies, outcome)] == [violation]


@pytest.mark.parametrize("outcomes", [(None, None), (SAID, SAID), (TIMEOUT, TIMEOUT)])
def test_a_tree_has_one_outcome(outcomes: tuple[Failure | None, ...]) -> None:
    """A second one is wrong, also where it says the same (L4, L15)."""
    copies = [ACKED] if outcomes[0] is None else [FAILED, OPEN]
    assert judged(copies, *outcomes) == ["tree got a second outcome"]


def test_a_timeout_is_neither_early_nor_late() -> None:
    """It is measured from the emit, or the last moment at which the time began anew before it (L12)."""
    assert judged([OPEN], TIMEOUT, at=NOT_YET) == ["tree timed out after 9.0 s"]
    assert judged([OPEN], TIMEOUT, at=AFTER_ALL) == ["tree timed out only after 16.0 s"]
    assert judged([OPEN], TIMEOUT, at=AFTER_ALL, restarts=(3.0, 5.0)) == []
    assert judged([OPEN], TIMEOUT, at=12.0, restarts=(5.0, 12.0)) == ["tree timed out after 7.0 s"]


def test_what_a_judge_cannot_know_is_not_held_against_the_engine() -> None:
    """An ack on its way, time that was given, a moment that nobody saw."""
    assert judged([ACKED], HELD_BY_NOBODY, under_way=True) == []
    assert judged([OPEN], TIMEOUT, at=AFTER_ALL, extended=True) == []
    assert judged([OPEN], TIMEOUT, at=None) == []


def test_the_oracle_shares_no_code_with_what_it_judges() -> None:
    """Of stormlet it imports the words for failures, and nothing else."""
    tree = ast.parse(Path(oracle.__file__).read_text("utf-8"))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    ours = [ast.unparse(node) for node in imported if "stormlet" in ast.unparse(node)]
    assert ours == ["from stormlet.core.outcomes import Failure, FailureKind"]
