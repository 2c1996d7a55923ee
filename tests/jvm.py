"""Options of JVMs that live for seconds, which tests start by the dozen, and archives of the classes that they load.

Such a JVM spends most of its life on reading and verifying classes. ``python -m tests.jvm`` has one of Spark and one of
Kafka write what they have loaded to a file as they end, which the others map into memory (class data sharing): half the
work of a start is saved. Without the files the tests do the same, but slower.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
ARCHIVES = ROOT / "build" / "classes"
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Compile once, and collect garbage without threads."""
LIMIT = 300.0
"""Seconds for a program that writes an archive."""


def options(program: str) -> Sequence[str]:
    """Of a JVM for ``"spark"`` or ``"kafka"``, with the archive of its classes if there is one."""
    archive = _archive(program)
    if not archive.exists() or " " in str(archive):  # at which Spark's scripts cut
        return SHORT_LIVED
    # Silent where a JVM finds that the archive is another one's: it starts without it then.
    return *SHORT_LIVED, f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"


def use_in_spark() -> None:
    """Have the JVMs that this process starts, and those of its children, take these options."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(options("spark")))


@contextmanager
def _written(program: str) -> Generator[Sequence[str]]:
    """Give the options of a JVM that writes the archive as it ends, which must be before this does."""
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    archive = _archive(program)
    partial = archive.with_suffix(".partial")
    yield *SHORT_LIVED, f"-XX:ArchiveClassesAtExit={partial}"
    partial.replace(archive)
    print(f"{archive}: {archive.stat().st_size / 2**20:.0f} MiB", flush=True)


def _archive(program: str) -> Path:
    return ARCHIVES / f"{program}.jsa"


def _archive_spark() -> None:
    """Have a stream and a batch written, in one session, and wait for its JVM."""
    from tests.spark.process_groups import settle, start, wait

    with TemporaryDirectory() as folder, _written("spark") as writing:
        os.environ["SPARK_SUBMIT_OPTS"] = " ".join(writing)
        leader = start("tests.spark.every_kind", folder, out=subprocess.DEVNULL, errors=subprocess.DEVNULL)
        wait(leader)
        settle(leader, LIMIT)
        assert leader.returncode == 0, "the program whose classes are archived has failed"


def _archive_kafka() -> None:
    """Have a broker start and end."""
    from tests.brokers.servers import Kafka

    with TemporaryDirectory() as folder, _written("kafka") as writing:
        broker = Kafka(Path(folder), java_options=writing)
        broker.start()
        broker.stop()


if __name__ == "__main__":
    _archive_spark()
    _archive_kafka()
