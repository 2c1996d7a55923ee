"""The examples, the recipes, and the topologies of the pages: simulations find nothing in them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from examples import flights, hooks, join, replay, word_count
from examples.embedded import Basket, Item, Quotes
from examples.recipes import broker, database, deduplicate, http_calls, rate_limit, webhooks
from stormlet import Topology
from stormlet.cli.new import TEMPLATES
from stormlet.connect.secrets import Secret
from stormlet.testing import SimulationReport, simulate

ROOT = Path(__file__).parents[2]
BASKETS = [Basket([Item("lamp", number), Item("chair", 1)]) for number in range(1, 6)]
EVENTS = [webhooks.Order("lamps", cents) for cents in range(5)]
ORDERS = ["ann tea 2", "bob milk 4", "nonsense", "ann milk 1"]
NOTHING_COMES_TWICE = "kill=0 error=0 delay=0 duplicate=0 drop=0 jump=0"
"""For what crashes if its sums are not those of a loop over the same data: they are of messages that came once."""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], ModuleType]:
    """Code as a module, with a file to look it up in."""

    def load(code: str) -> ModuleType:
        file, module = tmp_path / "shown.py", ModuleType("shown")
        file.write_text(code, "utf-8")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(code, str(file), "exec"), vars(module))
        return module

    return load


def block(page: str, number: int) -> str:
    """A program of a page."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)[number]


EXAMPLES: Mapping[str, tuple[Callable[[], Topology], Mapping[str, Any]]] = {
    "word_count": (word_count.word_count, {}),
    "flights": (partial(flights.delays, 30), {"faults": NOTHING_COMES_TWICE}),
    "join": (lambda: join.topology, {}),
    "replay": (lambda: replay.topology, {}),
    "hooks": (lambda: hooks.topology, {}),
    "embedded": (lambda: Quotes().topology, {"sources": {"baskets": BASKETS}}),
    "broker": (broker.consume, {}),
    "database": (partial(database.stored, stations=5, hours=5), {}),
    "deduplicate": (deduplicate.deduplicated, {}),
    "http_calls": (partial(http_calls.fetched, 20), {"seeds": range(10)}),
    "rate_limit": (partial(rate_limit.limited, 20), {}),
    "webhooks": (lambda: webhooks.Webhooks(Secret("s")).topology, {"sources": {"orders": EVENTS}}),
}
"""By name: how it is made, and simulated."""


@pytest.mark.untraced
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name: str) -> None:
    """Each of them but those with Spark, Postgres or a broker, of which simulated time knows nothing."""
    make, options = EXAMPLES[name]
    assert survived(make, **options).counts["acked"]


def test_every_example_is_there() -> None:
    """Those that have a topology; the ones with Spark, Postgres or a broker excepted, which are real."""
    files = [*(ROOT / "examples").glob("*.py"), *(ROOT / "examples" / "recipes").glob("*.py")]
    brokers = {"kafka_exactly_once", "kafka_topics", "nats_jetstream", "rabbitmq", "redis_streams"}
    real = {"batches_spark", "flights_spark", "embedded_load", "postgres", "postgres_queue", *brokers}
    assert {*EXAMPLES, *real} == {file.stem for file in files}


PAGES: Mapping[str, tuple[str, int, str, Mapping[str, Any]]] = {
    "the README's words": ("README.md", 0, "topology", {}),
    "orders": ("docs/testing.md", 0, "billing", {"sources": {"lines": ORDERS}}),
    "words": ("docs/testing.md", 6, "words", {}),
}
"""Page, block, the name of the topology there, and how it is simulated."""


@pytest.mark.untraced
@pytest.mark.parametrize("name", PAGES)
def test_a_topology_of_a_page(name: str, load: Callable[[str], ModuleType]) -> None:
    """Of the README, and of the page about testing."""
    page, number, topology, options = PAGES[name]
    assert survived(getattr(load(block(page, number)), topology), **options).counts["acked"]


def test_a_new_topology(load: Callable[[str], ModuleType]) -> None:
    """What `stormlet new` writes."""
    assert survived(load(TEMPLATES["MODULE.py"].replace("NAME", "new")).topology).counts["acked"]


def survived(topology: Any, **options: Any) -> SimulationReport:
    """The report of thirty seeds, or what else is wanted."""
    return simulate(topology, **{"seeds": range(30), **options})
