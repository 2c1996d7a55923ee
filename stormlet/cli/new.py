"""The ``new`` command, and the files that it writes."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from stormlet.cli.output import write_text
from stormlet.errors import TargetError

EXAMPLES = """\
stormlet new temperatures
stormlet new services/temperatures"""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
OF_PYTEST = {"conftest", "iniconfig", "packaging", "pluggy", "pygments", "pytest"}
TAKEN = sys.stdlib_module_names | OF_PYTEST | {"msgspec", "stormlet"}
"""Modules that the project, its test or Python itself imports, installed or not."""


def new(name: Annotated[str, Parameter(show_default=False)], /) -> int:
    """Write a small topology with its test, to begin from.

    Both work as they are. Nothing that exists is overwritten.

    Parameters
    ----------
    name
        The directory to be made; its last part becomes the topology's name, and that of its files.
    """
    directory = Path(name)
    try:
        _check(name, directory)
        files = _files(directory.name)
        directory.mkdir(exist_ok=True)
        for file, text in files.items():
            with (directory / file).open("x", encoding="utf-8", newline="\n") as made:
                made.write(text)
    except OSError as error:
        raise TargetError(f"{error.filename or directory} cannot be written: {error.strerror}") from None
    write_text(f"{_next_steps(directory, *files)}\n")
    return 0


def _files(name: str) -> dict[str, str]:
    """The texts by file. The files go by the project, as pytest wants no two tests of one name."""
    module = _module(name)
    return {
        file.replace("MODULE", module): text.replace("MODULE", module).replace("NAME", name)
        for file, text in TEMPLATES.items()
    }


def _module(name: str) -> str:
    """An identifier that hides no module."""
    identifier = name.replace("-", "_").lower()
    is_taken = iskeyword(identifier) or identifier in TAKEN or _is_installed(identifier)
    return f"{identifier}_topology" if is_taken else identifier


def _is_installed(module: str) -> bool:
    """Return True for a module that the project would hide from its test, from pytest or from its plugins; a directory
    is none."""
    try:
        spec = find_spec(module)
    except ValueError:  # it is imported, and not of a file
        return True
    return spec is not None and spec.origin is not None


def _check(name: str, directory: Path) -> None:
    if not NAME.fullmatch(directory.name):
        raise TargetError(
            f"{name!r} is no name for a topology: it begins with a letter from a to z, and has only those, "
            f"digits, - and _"
        )
    if not directory.parent.is_dir():
        raise TargetError(f"there is no directory {str(directory.parent)!r} to make {directory.name!r} in")
    if directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        raise TargetError(f"{name!r} exists already, and nothing is overwritten; choose another name")


def _next_steps(directory: Path, topology: str, test: str) -> str:
    return f"""\
{directory} has {topology} and {test}. Next:

  cd {shlex.quote(str(directory))}
  python -m stormlet run {topology}
  python -m pytest"""


_TOPOLOGY: Final = '''\
"""NAME: the mean temperature of each room, from the readings of its sensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec
from stormlet import BasicBolt, Collector, Reject, Topology, Tuple


class Reading(msgspec.Struct, frozen=True):
    """A reading of a sensor."""

    room: str
    celsius: float


class Mean(msgspec.Struct, frozen=True):
    """The mean of all readings of a room."""

    room: str
    celsius: float
    readings: int


def sensor_lines() -> Iterator[str]:
    """The source: each line is kept until all that comes of it is done, and emitted again if that fails."""
    yield from ("kitchen 21.5", "cellar 12.0", "kitchen 22.5", "attic 17.0", "cellar 13.0")


def parse(line: str) -> Reading:
    """A bolt may be a plain function: what it returns is emitted, and the line is acked."""
    room, _, celsius = line.rpartition(" ")
    try:
        return Reading(room, float(celsius))
    except ValueError as error:
        raise Reject(f"no temperature in {line!r}") from error  # trying again would not help


class Means(BasicBolt[Reading, Mean]):
    """A bolt with state is a class. There is an instance for each task, and each room has one task."""

    def __init__(self) -> None:
        self._temperatures = defaultdict[str, list[float]](list)

    def execute(self, tup: Tuple[Reading], out: Collector[Mean]) -> None:
        """Called for each reading; what it emits belongs to the line that the reading came of."""
        reading = tup.value
        temperatures = self._temperatures[reading.room]
        temperatures.append(reading.celsius)
        out.emit(Mean(reading.room, sum(temperatures) / len(temperatures), len(temperatures)))


topology = Topology("NAME", message_timeout=30.0)
lines = topology.spout("lines", sensor_lines)
readings = topology.bolt("parse", parse, lines.shuffle(), parallelism=2)
means = topology.bolt("means", Means, readings.fields("room"), parallelism=2)
topology.bolt("print", print, means.global_())
'''

_TEST: Final = '''\
"""The topology on simulated time: timeouts of minutes pass in milliseconds, in the same order in every run."""

from __future__ import annotations

import pytest
from stormlet import TupleFailed

from MODULE import Mean, lines, means, topology


@pytest.mark.simulated_time
async def test_a_reading_changes_the_mean_of_its_room() -> None:
    """Rooms do not mix. The run is inactive: its source is not asked, so that the test alone says what comes."""
    async with topology.run(seed=1, active=False) as running:
        for line, mean in {
            "kitchen 20": Mean("kitchen", 20.0, 1),
            "cellar 12": Mean("cellar", 12.0, 1),
            "kitchen 22": Mean("kitchen", 21.0, 2),
        }.items():
            tree = await running.emit(lines, line, collect=means)
            assert await tree == [mean]


@pytest.mark.simulated_time
async def test_a_line_without_a_temperature_is_rejected() -> None:
    """It fails at once and says why, instead of being tried again."""
    async with topology.run(seed=1, active=False) as running:
        tree = await running.emit(lines, "kitchen warm")
        with pytest.raises(TupleFailed, match="no temperature in 'kitchen warm'"):
            await tree


@pytest.mark.simulated_time
async def test_every_line_of_the_source_is_done() -> None:
    """The whole topology, from its source to its end."""
    async with topology.run(seed=1) as running:
        await running.finished()
        components = running.statistics().components
    assert components["lines"].acked == components["print"].executed == 5
'''

TEMPLATES: Final = {"MODULE.py": _TOPOLOGY, "test_MODULE.py": _TEST}
"""In the order in which a reader should open them. NAME stands for the name of the project, MODULE for its module's."""
