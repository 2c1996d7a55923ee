"""The word count: a wrong result is noticed."""

from __future__ import annotations

from collections import Counter

import pytest

from stormlet.bench.word_count import check, sentences
from stormlet.bench.workload import WrongResult


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
