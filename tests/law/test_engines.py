"""Each rule of the law is tested on both engines, or is one that only a run in process can keep.

A test that takes ``engine``, or ``keyed_engine``, runs in process and on Spark's chain of stages
(``tests/engines.py``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.law.test_law import RULES

HERE: Final = Path(__file__).parent
ENGINES: Final = ("engine", "keyed_engine")
EPOCHS: Final = "a run in process has epochs of its own; on Spark a micro-batch is one, by rules of its own"
RUNS: Final = "it is about what outlives a run, which tests/spark/engine/test_keyed.py has on Spark"
IN_PROCESS_ONLY: Final[Mapping[str, str]] = {
    "L2": "it is about the messages of ackers; on Spark one account spans the run",
    "L3": "messages of ackers arrive in any order; a partition has its ledger to itself",
    "L4": "it is about the verdicts of ackers, one by one; a partition asks its ledger when nothing moves",
    "L5": "messages of ackers come late or twice; a partition has its ledger to itself",
    "L6": "ackers are tasks of a process; on Spark they have no effect",
    "L9": "ackers=0 is refused on Spark, as a batch is checked by its ledger",
    "L10": "only a Spout class emits without a message id, and Spark asks none",
    "L12": "a batch knows no timeouts, but of what is held to the end of a stage",
    "L13": "no acker is there that could be full",
    "L17": "only a Spout class hears of outcomes, and Spark asks none",
    "F1": "it is about what leaves while a call waits; on Spark outputs leave when their inputs have their outcomes",
    "F2": "no host shares the loop of a partition",
    "F4": "acks and fails go straight to the ledger of their partition, and never queue",
    "F5": "no other threads share the interpreter of a partition, but those of its own calls",
    "S1": "only a Spout class hears of outcomes, and Spark asks none",
    "S2": "only a Spout class hears of outcomes, and Spark asks none",
    "S3": "nobody waits for room, as stages follow one another",
    "S4": "no spout of a batch is ever idle",
    "S7": "asynchronous sources are refused, as the driver reads all values first",
    "S9": "no broker gives a message of a batch to somebody else",
    "S10": "the driver reads all values of a batch first, and closes its sources",
    "B5": "ticks are refused, as a batch knows no time",
    "C4": "no host emits into a batch",
    "X1": EPOCHS,
    "X2": EPOCHS,
    "X3": EPOCHS,
    "X4": EPOCHS,
    "X5": EPOCHS,
    "X8": EPOCHS,
    "X9": EPOCHS,
    "X10": EPOCHS,
    "X11": EPOCHS,
    "X12": EPOCHS,
    "X13": EPOCHS,
    "X14": EPOCHS,
    "K5": RUNS,
    "K8": RUNS,
    "K9": RUNS,
    **{
        f"R{number}": "a batch reads no broker: the driver of Spark has the values first"
        for number in range(1, 11)
    },
}
"""The other rules, each with its reason."""


def on_both_engines() -> Iterator[str]:
    """The rules of all tests that take ``engine``."""
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.AsyncFunctionDef) and any(each.arg in ENGINES for each in node.args.args):
                rule = node.name.removeprefix("test_").partition("_")[0]
                if rule in RULES:
                    yield rule


def test_every_rule_is_kept_on_both_engines_or_says_why_not() -> None:
    """Whoever adds a rule decides."""
    both = set(on_both_engines())
    assert [rule for rule in RULES if rule not in both and rule not in IN_PROCESS_ONLY] == []


def test_no_rule_is_in_both_sets() -> None:
    """A reason that a test refutes is taken out, and so is one for a rule that is gone."""
    assert set(on_both_engines()) & set(IN_PROCESS_ONLY) == set()
    assert set(IN_PROCESS_ONLY) - set(RULES) == set()


def test_every_test_that_takes_the_engine_uses_it() -> None:
    """Else it would show nothing about Spark."""
    unused = [
        node.name
        for path in (*HERE.glob("test_*.py"), *(HERE.parent / "conformance").glob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.AsyncFunctionDef)
        and any(each.arg in ENGINES for each in node.args.args)
        and not any(isinstance(each, ast.Name) and each.id in ENGINES for each in ast.walk(node))
    ]
    assert unused == []
