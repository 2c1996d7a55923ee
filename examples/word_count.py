"""Count the words of a text.

::

    python -m stormlet run examples/word_count.py
    python -m stormlet run examples/word_count.py --arg path=book.txt --arg top=20
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from stormlet import BasicBolt, Collector, Topology, Tuple

TEXT = """\
The sun was shining on the sea, shining with all his might:
he did his very best to make the billows smooth and bright --
and this was odd, because it was the middle of the night.
"""


class Total(msgspec.Struct, frozen=True):
    """How often a word occurs."""

    word: str
    count: int


def read(path: Path | None) -> Iterator[str]:
    """The spout: every line it yields is a message, kept until all its words are counted."""
    if path is None:
        yield from TEXT.splitlines()
    else:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file


def split(line: str) -> Iterator[str]:
    """One line in, many words out: a bolt can be a plain generator function."""
    yield from re.findall(r"\w+", line.lower())


class Count(BasicBolt[str, Total]):
    """Counts the words that come to this task. Its totals go out when no more can come."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute(self, tup: Tuple[str], out: Collector[Total]) -> None:
        """Count one word."""
        self.counts[tup.value] += 1

    def finish(self, out: Collector[Total]) -> None:
        """The text is over: hand on what was counted."""
        for word, count in self.counts.items():
            out.emit(Total(word, count))


class Report(BasicBolt[Total, None]):
    """Prints the most frequent words. Being one task, it sees the totals of all the counters."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.totals: dict[str, int] = {}

    def execute(self, tup: Tuple[Total], out: Collector[None]) -> None:
        """Take a total down."""
        self.totals[tup.value.word] = tup.value.count

    def finish(self, out: Collector[None]) -> None:
        """All counters have finished: print."""
        frequent = sorted(self.totals.items(), key=lambda each: (-each[1], each[0]))
        for word, count in frequent[: self.top]:
            print(f"{count:7,}  {word}")


def word_count(path: Path | None = None, top: int = 10) -> Topology:
    """Count the words of the file at ``path``, or of a verse, and print the ``top`` most frequent ones."""
    topology = Topology("word-count")
    lines = topology.spout("lines", partial(read, path))
    words = topology.bolt("split", split, lines.shuffle(), parallelism=2)
    totals = topology.bolt("count", Count, words.fields(), parallelism=4)  # equal words to the same task
    topology.bolt("report", partial(Report, top), totals.global_())
    return topology
