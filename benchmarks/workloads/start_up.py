"""The time until something can run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from stormlet.bench.workload import Figures, Workload, expect

IMPORT = (
    "import time; began = time.perf_counter(); import stormlet; print((time.perf_counter() - began) * 1e3)"
)
WORD_COUNT = """\
from collections import Counter
from collections.abc import Iterator

import msgspec

from stormlet import BasicBolt, Collector, Topology, Tuple


class Total(msgspec.Struct, frozen=True):
    word: str
    count: int


def sentences() -> Iterator[str]:
    yield from ("the cow jumped over the moon", "an apple a day")


def split(sentence: str) -> Iterator[str]:
    yield from sentence.split()


class Count(BasicBolt[str, Total]):
    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute(self, tup: Tuple[str], out: Collector[Total]) -> None:
        self.counts[tup.value] += 1
        out.emit(Total(tup.value, self.counts[tup.value]))


topology = Topology("word-count")
lines = topology.spout("sentences", sentences)
words = topology.bolt("split", split, lines.shuffle(), parallelism=2)
counts = topology.bolt("count", Count, words.fields(), parallelism=4)
topology.bolt("print", print, counts.shuffle())
"""


def start_up(size: int) -> Figures:
    """Medians of so many processes: of the import alone, and of ``python -m stormlet check``, whole, on a word count.
    The bytecode is there, as it is where something was run before."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "word_count.py"
        file.write_text(WORD_COUNT, "utf-8")
        python = partial(_output, bytecode=directory)
        _check_ms(python, file)
        return {
            "import_ms": median(float(python("-c", IMPORT)) for _ in range(size)),
            "check_ms": median(_check_ms(python, file) for _ in range(size)),
        }


def _check_ms(python: Callable[..., str], file: Path) -> float:
    began = time.perf_counter()
    said = python("-m", "stormlet", "check", str(file))
    elapsed = (time.perf_counter() - began) * 1e3
    expect("word-count" in said and "no warnings" in said, True, f"what check said, {said}")
    return elapsed


def _output(*arguments: str, bytecode: str) -> str:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": bytecode}
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    expect(ended.returncode, 0, f"the exit code of {arguments}, which printed {ended.stderr or ended.stdout}")
    return ended.stdout


WORKLOADS = (Workload("start-up", "start-up", start_up, 5),)
