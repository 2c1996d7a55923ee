"""The page about the bench."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.catalogue import WORKLOADS

PAGE = (Path(__file__).parents[2] / "docs" / "bench.md").read_text("utf-8")


def test_the_page_tells_what_each_workload_is() -> None:
    """Each has a row of a table, but for the limits, which are told of above these."""
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]
    assert sorted([*named, "loops", "bare"]) == sorted(WORKLOADS)
    assert "The limit, `loops`, is" in PAGE
    assert "`bare`\ndoes less" in PAGE


def test_the_page_shows_options_that_there_are() -> None:
    """Every workload that its commands name exists."""
    commands = re.findall(r"^python -m benchmarks (.*?)(?:  +#.*)?$", PAGE, re.M)
    named = {word for each in commands for word in each.partition("--")[0].split()}
    assert named
    assert named <= WORKLOADS.keys()
