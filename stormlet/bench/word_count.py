"""The work that word counts share: the same text, records and counters for us, for the limit and for peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import cycle, islice

import msgspec

from stormlet.bench.workload import Figures, expect

WORDS_PER_SENTENCE = 6
DISTINCT_WORDS = 1000
DISTINCT_SENTENCES = 500
WORDS = tuple(f"word{number}" for number in range(DISTINCT_WORDS))


class Total(msgspec.Struct, frozen=True):
    """How often a word was seen so far."""

    word: str
    count: int


def sentences(count: int) -> Iterator[str]:
    """So many sentences of six words, of 1000 different ones."""
    return islice(cycle([_sentence(start) for start in range(DISTINCT_SENTENCES)]), count)


def _sentence(start: int) -> str:
    places = (start * 7 + step * 13 for step in range(WORDS_PER_SENTENCE))
    return " ".join(WORDS[place % DISTINCT_WORDS] for place in places)


def split(sentence: str) -> Iterator[str]:
    """The words of a sentence."""
    yield from sentence.split()


def check(counted: Counter[str], size: int) -> None:
    """Raises :class:`~stormlet.bench.workload.WrongResult` unless these are the counts of so many sentences."""
    expect(counted.total(), size * WORDS_PER_SENTENCE, "words counted")
    rounds, rest = divmod(size, DISTINCT_SENTENCES)
    expected = Counter[str]()
    for start in range(DISTINCT_SENTENCES):
        for word in _sentence(start).split():
            expected[word] += rounds + (start < rest)
    expect(counted, +expected, "counts of words")


def rate(size: int, seconds: float) -> Figures:
    """One tuple is one delivery: a sentence to who splits it, or a word to who counts it."""
    return {"tuples_per_s": size * (1 + WORDS_PER_SENTENCE) / seconds}
