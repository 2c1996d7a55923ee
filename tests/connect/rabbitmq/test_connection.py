"""Connections to a real RabbitMQ, and what is said when there is none."""

from __future__ import annotations

import asyncio
import logging
import ssl
import subprocess
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import util
from pathlib import Path

import pytest
from aiormq.exceptions import ProbableAuthenticationError

from stormlet.connect.address import read_address
from stormlet.connect.rabbitmq import connection
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.processes import HOST, Broker, free_ports
from tests.connect.rabbitmq.kit import Rabbit, consuming

pytestmark = pytest.mark.asyncio

PASSWORD = "tr0ub4dor&3"
QUOTED = "tr0ub4dor%263"


async def error_at(url: str, queue: str = "orders") -> Exception:
    """The error of a source that connects."""
    try:
        async with consuming(url, queue):
            raise AssertionError("it has connected")
    except (BrokerRefused, ConnectionLost) as error:
        return error


@asynccontextmanager
async def silent(context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that accepts and says nothing."""
    writers = list[asyncio.StreamWriter]()
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), HOST, 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


@pytest.fixture
def unsigned(tmp_path: Path) -> ssl.SSLContext:
    """A certificate for localhost that nobody has signed."""
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key", "-out", "cert"]
    subprocess.run(["openssl", "req", "-x509", *key, *name], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    return context


async def test_a_wrong_password_is_refused(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """By a sentence that has the user and no secret; nor has any log line or traceback."""
    caplog.set_level(logging.DEBUG)
    error = await error_at(f"amqp://guest:{QUOTED}@{HOST}:{broker.port}/")
    assert isinstance(error, BrokerRefused)
    assert "wrong user or password for 'guest'" in str(error)
    said = caplog.text + "".join(traceback.format_exception(error))
    assert "tr0ub4dor" not in said


@pytest.mark.parametrize("connecting", [True, False])
async def test_what_the_client_says_is_scrubbed(connecting: bool) -> None:
    """In every form that a URL gives a password."""
    address = read_address(f"amqp://guest:{QUOTED}@{HOST}/", where="here")
    for error in [OSError(f"no route for {PASSWORD}"), ProbableAuthenticationError(f"no {QUOTED}")]:
        assert "***" in str(connection.meaning(error, address, connecting=connecting))
        assert "tr0ub4dor" not in str(connection.meaning(error, address, connecting=connecting))


async def test_a_missing_virtual_host_is_refused(broker: Broker) -> None:
    """By its name."""
    error = await error_at(f"amqp://guest:guest@{HOST}:{broker.port}/shop")
    assert isinstance(error, BrokerRefused)
    assert "no virtual host 'shop' for 'guest'" in str(error)


async def test_a_missing_queue_is_refused(broker: Broker) -> None:
    """By its name."""
    error = await error_at(f"amqp://guest:guest@{HOST}:{broker.port}/", "nowhere")
    assert isinstance(error, BrokerRefused)
    assert "no queue 'nowhere' in vhost '/'" in str(error)


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("/?heartbeat=65535", "?heartbeat= is a number of whole seconds, 65534 at most"),
        ("/?heartbeat=x", "?heartbeat= is a number of whole seconds, 65534 at most"),
        ("/?auth=foo", "?auth=foo is not among the ways to log in"),
        ("/?cadata=abc", "the client cannot use the URL: Incorrect padding"),
        (f"/{'x' * 300}", "the client cannot use the URL: Max length exceeded for virtual_host"),
    ],
    ids=["heartbeat", "no heartbeat", "auth", "cadata", "virtual host"],
)
async def test_a_part_of_the_url_that_cannot_be_is_refused(broker: Broker, rest: str, words: str) -> None:
    """The client takes no heartbeats at all for a number that is too large, and raises what it likes for others."""
    error = await error_at(f"amqp://guest:guest@{HOST}:{broker.port}{rest}")
    assert isinstance(error, BrokerRefused)
    assert words in str(error)


async def test_a_port_without_tls_is_refused(broker: Broker) -> None:
    """With the way out."""
    error = await error_at(f"amqps://guest:guest@{HOST}:{broker.port}/")
    assert isinstance(error, BrokerRefused)
    assert "does not speak TLS" in str(error)


async def test_a_certificate_is_verified(unsigned: ssl.SSLContext) -> None:
    """One that nobody has signed is refused."""
    async with silent(unsigned) as port:
        error = await error_at(f"amqps://guest:guest@localhost:{port}/")
    assert isinstance(error, BrokerRefused)
    assert "its certificate is not valid" in str(error)


async def test_a_port_that_nobody_listens_at_is_a_lost_connection() -> None:
    """At the start that fails the run, later it is tried again."""
    (port,) = free_ports(1)
    error = await error_at(f"amqp://guest:{QUOTED}@{HOST}:{port}/")
    assert isinstance(error, ConnectionLost)
    assert f"amqp://guest:***@{HOST}:{port}" in str(error)


async def test_a_host_that_says_nothing_is_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client alone would wait for ever."""
    monkeypatch.setattr(connection, "CONNECTS_WITHIN", 0.3)
    async with silent() as port:
        error = await error_at(f"amqp://guest:guest@{HOST}:{port}/")
    assert isinstance(error, ConnectionLost)
    assert "no answer within 0.3 s" in str(error)


async def test_the_next_host_is_tried(rabbit: Rabbit, broker: Broker) -> None:
    """If the first one is down."""
    (port,) = free_ports(1)
    await rabbit.declare()
    async with consuming(f"amqp://guest:guest@{HOST}:{port},{HOST}:{broker.port}/", rabbit.queue):
        assert await rabbit.consumers() == 1


async def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence."""
    monkeypatch.setattr(connection, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'stormlet\[rabbitmq\]'"):
        await error_at("amqp://host/")
    assert util.find_spec("aiormq") is not None
