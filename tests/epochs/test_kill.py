"""A word count that is killed again and again counts each word once (law X1, X8)."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from time import monotonic, sleep

from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.model.state.keyed import states_of
from stormlet.state.sqlite.reading import StateReader
from tests.epochs.counting import Count, words

ROOT = Path(__file__).parents[2]
WORDS = 30_000


def live(path: Path, seconds: float | None) -> bool:
    """Run until it ends, or for so many seconds from its first commit on. Returns True if it has ended."""
    command = [sys.executable, "-m", "tests.epochs.counting", str(path), str(WORDS)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        if seconds is None:
            return process.wait(120) == 0
        before, deadline = size(path), monotonic() + 30
        while process.poll() is None and size(path) == before and monotonic() < deadline:
            sleep(0.01)
        sleep(seconds)
        return process.poll() == 0
    finally:
        process.kill()
        process.wait()


def size(path: Path) -> int:
    """Bytes of the write-ahead log, which grows with the first commit."""
    log = Path(f"{path}-wal")
    return log.stat().st_size if log.exists() else 0


def kept(path: Path) -> dict[str, int]:
    """The counts in the file."""
    state = State(StateId("count", "total"), states_of(Count)["total"])
    reader = StateReader(path)
    state.load(reader.load().states[state.id])
    return dict(state.tables[0].committed_items())


def rows(path: Path) -> Counter[str]:
    """The words in the table of a file."""
    with closing(sqlite3.connect(path)) as connection:
        return Counter(word for (word,) in connection.execute("SELECT value FROM passed"))


def test_a_word_count_that_is_killed_counts_each_word_once(tmp_path: Path) -> None:
    """Six kills at random moments, and failures after words were counted; each word is once in each table, too."""
    random, path = Random(16), tmp_path / "counts.state"
    kills = 0
    for _ in range(6):
        kills += not live(path, random.uniform(0.0, 0.15))
    assert live(path, None)
    assert kept(path) == Counter(words(WORDS))
    assert rows(path) == rows(Path(f"{path}.rows")) == Counter(words(WORDS))
    assert kills
    logging.getLogger(__name__).info("%d kills", kills)
