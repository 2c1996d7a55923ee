"""Records a run, has the disk lose its power at random moments, and looks at what is left each time:
``python -m tests.state.power.losses FOLDER --losses 3000 --seed 1``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

from stormlet.errors import StateUnusable
from stormlet.state.sqlite.reading import StateReader
from stormlet.state.stores import owned
from tests.state.power.disk import Entry, losses, read_record
from tests.state.power.recorded import SEED
from tests.state.programs import differences

EPOCHS = 60


def record(folder: Path, *pragmas: str) -> Sequence[Entry]:
    """All that a run has done to its folder. With pragmas, sqlite is told to do it in another way; with ``rocksdb``, it
    is RocksDB that does."""
    library, work, written = folder / "recorder.so", folder.resolve() / "work", folder / "record"
    work.mkdir()
    source = Path(__file__).with_name("recorder.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    run = [sys.executable, "-m", "tests.state.power.recorded", str(work), str(EPOCHS), *pragmas]
    recording = {"LD_PRELOAD": str(library), "RECORD_BELOW": str(work), "RECORD_TO": str(written)}
    subprocess.run(run, check=True, env={**os.environ, **recording})
    return list(read_record(written, work))


def wrong(folder: Path, entries: Sequence[Entry], seed: int, count: int) -> Iterator[list[str]]:
    """What is wrong after each loss of power."""
    for number, (moment, files) in enumerate(losses(entries, Random(seed), count)):
        after = folder / f"after-{number}"
        put(after, files)
        yield [
            f"after {moment} of {len(entries)}: {found}" for found in findings(after, told(entries[:moment]))
        ]
        shutil.rmtree(after)


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    is_rocksdb = "rocksdict-config.json" in files
    place = folder / "words.rocksdb" if is_rocksdb else folder
    place.mkdir(parents=True)
    for name, content in files.items():
        if not name.endswith(("-shm", ".lock", "told")):
            (place / name).write_bytes(content)


def told(entries: Sequence[Entry]) -> list[str]:
    """What the run has said by then."""
    return [entry.rest.decode().strip() for entry in entries if (entry.letter, entry.name) == ("w", "told")]


def findings(folder: Path, told: Sequence[str]) -> Iterator[str]:
    """Where an epoch that was told is missing or not whole, or the copy is."""
    last = max([int(each) for each in told if each != "saved"], default=0)
    try:
        place = next(folder.glob("*.rocksdb"), folder / "words.state")
        with closing(owned(place, "words")) as store:
            stored = store.load()
            yield from differences(stored, SEED)
        if stored.epoch not in (last, last + 1):
            yield f"epoch {stored.epoch} is the last one, but {last} was told"
        if "saved" in told:
            yield from differences_of_copy(folder / "copy")
    except StateUnusable as error:
        yield str(error)


def differences_of_copy(path: Path) -> Iterator[str]:
    with closing(StateReader(path)) as reader:
        stored = reader.load()
    yield from differences(stored, SEED)
    if stored.epoch != EPOCHS - 1:
        yield f"the copy ends with epoch {stored.epoch}"


def main() -> None:
    """Record once, and lose the power often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--losses", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pragma", action="append", default=[])
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    entries = record(options.folder, *options.pragma)
    found = list(wrong(options.folder, entries, options.seed, options.losses))
    for each in filter(None, found):
        print(each)
    print(
        f"{options.losses} losses of power in {len(entries)} writes, syncs and names: {sum(map(bool, found))} wrong"
    )
    sys.exit(any(found))


if __name__ == "__main__":
    main()
