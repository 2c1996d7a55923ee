"""Pathway, in two forms.

One hands every word to a function, which builds a record and counts, as all others do. The other reads a file and
counts in its own engine: the totals alone come to Python, once for a word and commit, so it does less.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from stormlet.bench.word_count import Total, check, rate, sentences
from stormlet.bench.workload import Figures, Workload

if TYPE_CHECKING:
    from pathway import Table

COMMIT_MS = 100


def each_word(size: int) -> Figures:
    """Sentences from a Python connector; a subscriber gets each word."""
    import pathway as pw
    from pathway.io.python import ConnectorSubject

    class Sentences(ConnectorSubject):
        def run(self) -> None:
            for sentence in sentences(size):
                self.next(data=sentence)

        @property
        def _deletions_enabled(self) -> bool:
            return False

    class Line(pw.Schema):
        data: str

    counts = Counter[str]()

    def count(key: object, row: dict[str, str], time: int, is_addition: bool) -> None:
        word = row["word"]
        counts[word] += 1
        Total(word, counts[word])

    lines = pw.io.python.read(Sentences(), schema=Line, autocommit_duration_ms=COMMIT_MS)
    pw.io.subscribe(_words(lines), count)
    return _run(counts, size)


def own_counts(size: int) -> Figures:
    """Sentences from a file; the engine counts."""
    import pathway as pw

    counts = Counter[str]()

    def note(key: object, row: dict[str, str], time: int, is_addition: bool) -> None:
        if is_addition:
            counts[row["word"]] = int(row["count"])
            Total(row["word"], int(row["count"]))

    with tempfile.TemporaryDirectory() as directory:
        text = Path(directory) / "text"
        text.write_text("\n".join(sentences(size)), "ascii")
        words = _words(pw.io.fs.read(str(text), format="plaintext", mode="static"))
        pw.io.subscribe(words.groupby(pw.this.word).reduce(pw.this.word, count=pw.reducers.count()), note)
        return _run(counts, size)


def _words(lines: Table) -> Table:
    import pathway as pw

    words = pw.apply_with_type(_split, tuple[str, ...], pw.this.data)
    return lines.select(word=words).flatten(pw.this.word)


def _split(sentence: str) -> tuple[str, ...]:
    return tuple(sentence.split())


def _run(counts: Counter[str], size: int) -> Figures:
    import pathway as pw

    began = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    seconds = time.perf_counter() - began
    check(counts, size)
    return rate(size, seconds)


WORKLOADS = (
    Workload("pathway", "Pathway, a function for each word", each_word, 60_000, "peer", "pathway"),
    Workload("pathway-reduce", "Pathway, counts of its own", own_counts, 100_000, "peer", "pathway"),
)
