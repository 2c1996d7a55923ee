"""The page about explanations: its transcript is what the program on it gives."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from pathlib import Path

import pytest

from stormlet import Place, Topology
from stormlet.core.outcomes import PHRASES
from stormlet.testing import run_simulated

PAGE = (Path(__file__).parents[2] / "docs" / "explaining.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def without_foreign_lines(text: str) -> str:
    """Lines of the standard library differ between versions of Python."""
    return re.sub(r"(?<!orders)\.py:\d+", ".py", text)


def the_topology(there: Path) -> Topology:
    """That of the first block, from a file of that name."""
    (there / "orders.py").write_text(BLOCKS[0][1], "utf-8")
    spec = importlib.util.spec_from_file_location("orders_on_the_page", there / "orders.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    topology = module.topology
    assert isinstance(topology, Topology)
    return topology


def test_the_transcript_is_real(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The program on the page logs what the page shows, root for root."""
    topology = the_topology(tmp_path)

    async def run() -> None:
        async with topology.run(seed=1, explain_stuck=10, record_edges=1, drain_timeout=0):
            await asyncio.sleep(14)

    run_simulated(run())
    told = [record.getMessage() for record in caplog.records if record.name.endswith(".explain.stuck")]
    (transcript,) = [text for language, text in BLOCKS if not language]
    assert without_foreign_lines("\n".join(told)) == without_foreign_lines(transcript.rstrip("\n"))


def test_the_readme_shows_the_same() -> None:
    """Its transcript is a part of that of the page."""
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    section = readme.partition("## Why is it stuck?")[2].partition("\n## ")[0]
    (shown,) = re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    (transcript,) = [text for language, text in BLOCKS if not language]
    assert set(shown.splitlines()) < set(transcript.splitlines())


@pytest.mark.parametrize("place", Place)
def test_every_place_is_on_the_page(place: Place) -> None:
    """The table says what each means."""
    assert f"| `{PHRASES[place]}` a task |" in PAGE
