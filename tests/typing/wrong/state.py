"""Uses of state that must be rejected: each marked line by the checkers that its mark names, and no other line."""

from __future__ import annotations

from typing import Self

import msgspec

from stormlet import Cell, Collector, KeyedBolt, ListOf, MapOf, Stream, Topology, Tuple, Value


class Word(msgspec.Struct, frozen=True):
    """On the stream."""

    text: str


class Tally(KeyedBolt[str, Word, int]):
    """Misuses its state."""

    total = Value(int, 0)
    named: Value[int] = Value(int, 0)
    word = Value(Word)
    prices = MapOf(str, float)
    latest = ListOf(int)
    both = Value(int, 0, factory=int)  # error: mypy, pyright
    maker: Value[int] = Value(int, factory=str)  # error: mypy, pyright
    bare = Value()  # error: mypy, pyright

    def execute(self, tup: Tuple[Word], out: Collector[int]) -> None:
        self.total.append(1)  # error: mypy, pyright
        self.total = "one"  # error: mypy
        self.named = "one"  # error: mypy, pyright
        self.named = None  # error: mypy, pyright
        self.word.text  # error: mypy, pyright
        self.prices["tea"] = "dear"  # error: mypy, pyright
        self.latest.append("one")  # error: mypy, pyright
        self.key = 1  # error: mypy, pyright
        self.set_timer("noon")  # error: mypy, pyright
        out.emit(self.key)  # error: mypy, pyright


class Merged(KeyedBolt[str, Word, int]):
    """Misuses the other state."""

    total = Value(int, 0)
    latest = ListOf(int)

    def merge(self, other: Self) -> None:
        self.total += other.words  # error: mypy, pyright
        self.total += other.latest  # error: mypy, pyright
        self.latest.extend(other.key)  # error: mypy, pyright


class MergesTwo(KeyedBolt[str, Word, int]):
    """Takes one too many."""

    def merge(self, one: Self, other: Self) -> None:  # error: mypy, pyright
        pass


def tallied(word: Word, total: Cell[int]) -> int:
    total.value = "one"  # error: mypy, pyright
    return 1


def wiring(topology: Topology, words: Stream[Word], texts: Stream[str]) -> None:
    topology.bolt("tally", Tally, texts.fields())  # error: mypy, pyright
    topology.bolt("tallied", tallied, words.fields())  # error: mypy, pyright
    topology.bolt("tallied", tallied, words.fields(), state=Value(str, ""))  # error: mypy, pyright
    topology.bolt("tallied", tallied, texts.fields(), state=Value(int, 0))  # error: mypy, pyright
    topology.bolt("tallied", tallied, words.fields(), state=0)  # error: mypy, pyright
