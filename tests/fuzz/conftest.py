"""How long the fuzz tests go on: in the ordinary suite for seconds, and with --hypothesis-profile=campaign for long."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CAMPAIGN = 4_000
"""Examples; see fuzzed.py."""

settings.register_profile(
    "campaign",
    deadline=None,
    max_examples=CAMPAIGN,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

FLOW = """\
from stormlet import Topology

def build(times: int = 1, word: str = "a") -> Topology:
    topology = Topology("flow", max_attempts=2, message_timeout=5)
    words = topology.spout("words", [word] * max(0, min(times, 3)))
    topology.bolt("count", len, words.fields(), parallelism=2)
    return topology

topology = build()
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A campaign takes longer than a test."""
    for item in items:
        if "fuzz" in item.path.parts and settings.default.max_examples == CAMPAIGN:
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current directory of a module, with a topology."""
    path = tmp_path_factory.mktemp("fuzz")
    (path / "flow.py").write_text(FLOW, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setattr(sys, "path", [*sys.path])
        yield path
