"""What users work with can be read and asked, and what goes wrong in their code says where."""

from __future__ import annotations

import inspect
import logging
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import stormlet
from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    ReliableSpout,
    Running,
    Spout,
    Topology,
    Tree,
    Tuple,
)
from tests.helpers import run_to_end

PACKAGE = Path(stormlet.__file__).parent


@pytest.mark.parametrize(
    "kind", [Topology, Running, Tree, Bolt, BasicBolt, BatchBolt, Spout, ReliableSpout, Collector]
)
def test_public_classes_can_be_read(kind: type[Any]) -> None:
    """Their source, their documentation and their parameters; none of them is compiled."""
    assert inspect.getsource(kind).startswith(f"class {kind.__name__}")
    assert inspect.getdoc(kind)
    assert inspect.signature(kind)


def test_every_public_method_has_parameters() -> None:
    """Editors and help show them."""
    for kind in (Topology, Running, Tree, Bolt, Spout, Collector, stormlet.SpoutCollector):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            assert inspect.signature(method).parameters, f"{kind.__name__}.{name}"


def divide(number: int) -> float:
    return 1 / number


class Divides(Bolt[int, float]):
    def execute(self, tup: Tuple[int], out: Collector[float]) -> None:
        out.emit(divide(tup.value), anchors=tup)
        out.ack(tup)


class DividesLater(BasicBolt[int, float]):
    async def execute(self, tup: Tuple[int], out: Collector[float]) -> None:
        out.emit(divide(tup.value))


def frames(trace: TracebackType | None) -> list[tuple[str, int | None]]:
    return [(frame.filename, frame.lineno) for frame in traceback.extract_tb(trace)]


@pytest.mark.simulated_time
@pytest.mark.parametrize("bolt", [divide, Divides, DividesLater], ids=lambda bolt: bolt.__name__)
async def test_tracebacks_end_where_it_went_wrong(bolt: Any, caplog: pytest.LogCaptureFixture) -> None:
    """In the line of the user's file; what is above it is the engine's, by paths and lines that exist."""
    topology = Topology("division", max_attempts=1)
    topology.bolt("divide", bolt, topology.spout("numbers", [0]).shuffle(), outputs=float)
    await run_to_end(topology)
    (error,) = [
        each.exc_info[1] for each in caplog.records if each.levelno == logging.ERROR and each.exc_info
    ]
    assert isinstance(error, ZeroDivisionError)
    *above, last = frames(error.__traceback__)
    assert last == (__file__, divide.__code__.co_firstlineno + 1)
    for filename, line in above:
        file = PACKAGE.parent / filename  # compiled frames have a path that begins with stormlet/
        assert file in {Path(__file__), *PACKAGE.rglob("*.py")}
        assert line is not None
        assert 0 < line <= len(file.read_text("utf-8").splitlines())
