"""Wirings that must be rejected: each marked line by the checkers that its mark names, and no other line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial

import msgspec

from stormlet import BasicBolt, Bolt, Spout, Stream, Topology


class Word(msgspec.Struct):
    """On one stream."""

    text: str


class Total(msgspec.Struct):
    """On another one."""

    count: int


class Alarm(msgspec.Struct):
    """On a third one."""

    reason: str


class Count(BasicBolt[Word, Total]):
    """Takes words."""


class Needy(BasicBolt[Word, Total]):
    """Cannot be made without an argument."""

    def __init__(self, start: int) -> None:
        self.start = start


class Join(Bolt[Word | Total, str]):
    """Takes words and totals."""


class Words(Spout[Word]):
    """Emits words."""


def length(word: Word) -> int:
    return len(word.text)


def letters(word: Word) -> Iterator[str]:
    yield from word.text


async def looked_up(word: Word) -> Total | None:
    return None


async def streamed(word: Word) -> AsyncIterator[str]:
    yield word.text


def printed(word: Word) -> None:
    print(word)


def common(value: Word | Total) -> str:
    return str(value)


def pair(word: Word, other: Word) -> int:
    return 2


def make_count(start: int) -> Count:
    return Count()


def generated() -> Iterator[Word]:
    yield Word("a")


def repeated(times: int) -> Iterator[Word]:
    yield from [Word("a")] * times


topology = Topology("wrong")
words = topology.spout("words", Words)
totals = topology.bolt("totals", Count, words.fields("text"))
alarms = topology.spout("alarms", outputs=Alarm)

# A bolt at the wrong stream.
topology.bolt("a", length, totals.shuffle())  # error: mypy, pyright
topology.bolt("b", letters, totals.shuffle())  # error: mypy, pyright
topology.bolt("c", looked_up, totals.shuffle())  # error: mypy, pyright
topology.bolt("d", streamed, totals.shuffle())  # error: mypy, pyright
topology.bolt("e", printed, totals.shuffle())  # error: mypy, pyright
topology.bolt("f", Count, totals.shuffle())  # error: mypy, pyright
topology.bolt("g", lambda: Count(), totals.shuffle())  # error: mypy, pyright
topology.bolt("h", partial(Needy, 1), totals.shuffle())  # error: pyright
topology.bolt("i", lambda word: len(word.text), totals.shuffle())  # error: mypy, pyright

# One of its streams is wrong.
topology.bolt("j", length, words.shuffle(), totals.shuffle())  # error: mypy, pyright
topology.bolt("k", Count, words.shuffle(), totals.shuffle())  # error: mypy, pyright
topology.bolt("l", common, words.shuffle(), alarms.shuffle())  # error: mypy, pyright
topology.bolt("m", Join, words.shuffle(), alarms.shuffle())  # error: mypy, pyright
topology.bolt("n", Join, words.shuffle(), totals.shuffle(), alarms.shuffle())  # error: mypy, pyright

# What it emits is not what the next one takes.
topology.bolt("o", Count, topology.bolt("p", length, words.shuffle()).shuffle())  # error: mypy, pyright
topology.bolt("q", length, topology.bolt("r", Join, words.shuffle()).shuffle())  # error: mypy, pyright
topology.bolt("s", length, words.named("odd", Total).shuffle())  # error: mypy, pyright
topology.bolt("t", length, words.named("odd").shuffle())  # error: mypy, pyright
ints: Stream[str] = topology.bolt("u", length, words.shuffle())  # error: mypy, pyright

# No bolt at all.
topology.bolt("v", length)  # error: mypy, pyright
topology.bolt("w", length, words)  # error: mypy, pyright
topology.bolt("x", Count(), words.shuffle())  # error: mypy, pyright
topology.bolt("y", Needy, words.shuffle())  # error: mypy, pyright
topology.bolt("z", make_count, words.shuffle())  # error: mypy, pyright
topology.bolt("aa", pair, words.shuffle())  # error: mypy, pyright
topology.bolt("ab", "length", words.shuffle())  # error: mypy, pyright

# No source.
topology.spout("ac", Words())  # error: mypy, pyright
topology.spout("ad", 7)  # error: mypy, pyright
topology.spout("ae", repeated)  # error: mypy, pyright
other: Stream[Total] = topology.spout("af", generated)  # error: mypy, pyright
fed: Stream[Total] = topology.spout("ag", outputs=Word)  # error: mypy, pyright
topology.set_source(words, [7])  # error: mypy, pyright
topology.set_source(words, Words())  # error: mypy, pyright
topology.set_source(alarms, generated)  # error: mypy, pyright
topology.set_source("words", generated)  # error: mypy, pyright

# Keys that the values do not have.
words.fields(lambda word: word.count)  # error: mypy, pyright
words.partial_key(lambda word: word.count)  # error: mypy, pyright
words.fields(1.5)  # error: mypy, pyright
