"""Every example and recipe prints on Spark what it prints in process, or is refused with its sentence."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from stormlet.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
FILES: Final = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py"))
REFUSED: Final[Mapping[str, str]] = {
    "embedded.py": "has no topology",
    "embedded_load.py": "has no topology",
    "flights_spark.py": (
        "bolt 'report' takes from sink 'write', which is written when all bolts have finished; "
        "do after the run what comes after the sink"
    ),
    "recipes/webhooks.py": "has no topology",
    "recipes/postgres.py": "bolt 'write' works on epochs, which a run in this process has",
    **{
        f"recipes/{broker}.py": "spout 'orders' is made by a Spout class, which only a task in this process can ask"
        for broker in (
            "broker",
            "kafka_exactly_once",
            "kafka_topics",
            "nats_jetstream",
            "postgres_queue",
            "rabbitmq",
            "redis_streams",
        )
    },
}
"""The sentence of each."""
SILENT: Final = ("hooks.py",)
"""Those whose topology prints nothing: what it has to tell is the hook's, which the command line has none of."""
ARGUMENTS: Final[Mapping[str, Sequence[str]]] = {
    "batches_spark.py": ["rows=20000", "directory={folder}"],
    "flights.py": ["limit=20000"],
}
PRINTED: Final[Mapping[str, str]] = {
    "recipes/database.py": r"^[\d,]+ readings",  # the number of transactions depends on time
    "recipes/deduplicate.py": r"^receipt of .*$",  # what charges prints where it runs
    "recipes/rate_limit.py": r"call \d+$",  # after the time
    "replay.py": r"^paid: .*$",  # what charges prints where it runs
}
"""What one task prints, and no clock has a part in; by default all."""


@dataclass(frozen=True)
class Ran:
    """What comes of a run."""

    code: int
    printed: Sequence[str]
    dead_letters: Sequence[str]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each run loads its example anew."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    forget()


def forget() -> None:
    """Forget the modules of all examples."""
    for file in FILES:
        sys.modules.pop(Path(file).stem, None)


@pytest.mark.untraced
@pytest.mark.parametrize("name", FILES)
def test_an_example(
    spark: SparkSession, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same lines, the same exit code, and as many dead letters; whatever the order."""
    if name in REFUSED:
        assert main(["check", str(EXAMPLES / name), "--engine", "spark"]) == 2
        assert REFUSED[name] in capsys.readouterr().err
        return
    here, there = run(name, tmp_path, capsys), run(name, tmp_path, capsys, "--engine", "spark")
    assert here.printed or name in SILENT
    assert there == here


def run(name: str, folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Ran:
    """Run it by the command line."""
    forget()
    given = [each.format(folder=folder) for each in ARGUMENTS.get(name, ())]
    arguments = [word for each in given for word in ("--arg", each)]
    code = main(["run", str(EXAMPLES / name), *arguments, *options])
    output = capsys.readouterr()
    printed = re.findall(PRINTED.get(name, "^.+$"), output.out, re.MULTILINE)
    return Ran(code, sorted(printed), re.findall(r"^dead letters: \d+", output.err, re.MULTILINE))


def test_what_is_said_of_an_example_is_of_one_that_is_there() -> None:
    """Also after it was renamed."""
    assert {*REFUSED, *SILENT, *ARGUMENTS, *PRINTED} - set(FILES) == set()
