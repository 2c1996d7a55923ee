"""A Valkey for each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers.conftest import started
from tests.brokers.processes import Broker
from tests.brokers.servers import Valkey


@pytest.fixture(scope="module")
def valkey() -> Iterator[Broker]:
    """Valkey, which speaks Redis's protocol."""
    yield from started(Valkey)
