"""A NATS for each module, and another client of it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.brokers.conftest import started
from tests.brokers.processes import HOST, Broker, missing
from tests.brokers.proxy import Proxy
from tests.brokers.servers import Nats
from tests.connect.nats.kit import Server


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """NATS with JetStream."""
    yield from started(Nats)


@pytest_asyncio.fixture
async def server(broker: Nats, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """Another client, with a stream of the test's own."""
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    async with Server(broker.url, name) as server:
        await server.make()
        yield server
        await server.js.delete_stream(name)


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    """A proxy before the broker."""
    with Proxy(broker.port) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def certificate() -> Iterator[tuple[str, str]]:
    """A certificate of this host's own, and its key."""
    if shutil.which("openssl") is None:
        missing("openssl", "apt-get install openssl")
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        subject = ["-subj", "/CN=nats", "-addext", f"subjectAltName=IP:{HOST}"]
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key]
        subprocess.run([*made, "-out", certificate, *subject], check=True, capture_output=True)
        yield certificate, key
