"""Every workload comes to its end with a right result and positive figures, and a wrong result is noticed."""

from __future__ import annotations

from collections import Counter

import pytest

from stormlet.bench.catalogue import WORKLOADS
from stormlet.bench.rounds import measure
from stormlet.bench.units import UNITS
from stormlet.bench.word_count import check, sentences
from stormlet.bench.workload import WrongResult

SHORT = 0.002
SEVERAL_BATCHES = 0.02
INSTALLED = [name for name, each in WORKLOADS.items() if each.kind != "spark" and each.available]
MAY_BE_NOTHING = {"resident_bytes_per_tree", "idle_wakeups", "longest_hold_ms", "longest_collecting_ms"}


@pytest.mark.parametrize("name", INSTALLED)
def test_a_workload_gives_figures(name: str) -> None:
    """In a short round; it checks its result by itself."""
    scale = SEVERAL_BATCHES if WORKLOADS[name].kind == "peer" else SHORT
    figures = measure([name], rounds=1, scale=scale)[name].figures
    assert figures
    assert figures.keys() <= UNITS.keys()
    assert all(figures[which].median > 0 for which in figures.keys() - MAY_BE_NOTHING)


def counted(size: int) -> Counter[str]:
    """What a word count should find."""
    return Counter(word for sentence in sentences(size) for word in sentence.split())


@pytest.mark.parametrize("size", [1, 499, 500, 1234])
def test_right_counts_pass(size: int) -> None:
    """Whole rounds through the sentences, or parts of one."""
    check(counted(size), size)


def test_a_lost_word_is_noticed() -> None:
    """A workload that loses something must not give a figure."""
    counts = counted(600)
    counts["word0"] -= 1
    with pytest.raises(WrongResult, match="words counted: 3599 instead of 3600"):
        check(counts, 600)


def test_a_word_in_place_of_another_is_noticed() -> None:
    """The sum alone would not tell."""
    counts = counted(600)
    counts["word0"] -= 1
    counts["word1"] += 1
    with pytest.raises(WrongResult, match="counts of words"):
        check(counts, 600)


@pytest.mark.untraced
def test_memory_stays_flat_with_a_slow_last_bolt() -> None:
    """Ten times as many tuples need no more memory: the queues are bounded (law B6)."""
    figures = measure(["flat"], rounds=1, scale=0.4)["flat"].figures
    assert figures["peak_mib"].median - figures["peak_mib_early"].median < 4
