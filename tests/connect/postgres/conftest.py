"""A Postgres for each module, and a database for each test."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.brokers.processes import missing
from tests.brokers.proxy import Proxy
from tests.connect.postgres.kit import LOGICAL, Place, Postgres
from tests.examples.postgres_server import binaries


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """Postgres."""
    programs = binaries()
    if programs is None:
        missing("Postgres", "apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(programs, Path(folder))
        yield server
        server.stop()


@pytest.fixture(scope="module")
def logical() -> Iterator[Postgres]:
    """Postgres that tells what is changed."""
    programs = binaries()
    if programs is None:
        missing("Postgres", "apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(programs, Path(folder), LOGICAL)
        yield server
        server.stop()


@pytest_asyncio.fixture
async def shop(logical: Postgres, request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """A database whose changes are captured."""
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)[:63]
    async with Place(logical.database(name)) as place:
        yield place
        await place.drop_slots()


@pytest_asyncio.fixture
async def place(server: Postgres, request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """A database of the test's own."""
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)[:63]
    async with Place(server.database(name)) as place:
        yield place


@pytest.fixture
def proxy(server: Postgres) -> Iterator[Proxy]:
    """A proxy before the server."""
    with Proxy(server.port) as proxy:
        yield proxy
