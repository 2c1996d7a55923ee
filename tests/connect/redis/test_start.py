"""The start of a source or a sink at Redis Streams: refused with a sentence that says why, and no secret in it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from stormlet.connect import redis
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.processes import HOST, Broker, free_ports, missing
from tests.connect.redis.streams import Place, Task, begin, begin_sink, bodies, place

pytestmark = pytest.mark.asyncio

PASSWORD = "pa/ss word"
QUOTED = "pa%2Fss%20word"


@pytest_asyncio.fixture
async def guarded(valkey: Broker) -> AsyncIterator[Place]:
    """A stream that the user `clerk` may use, by a password, but not all commands."""
    async with place(valkey) as at:
        await at.client.execute_command(
            "ACL", "SETUSER", "clerk", "reset", "on", f">{PASSWORD}", "~*", "+@all", "-info", "-client"
        )
        await at.add("a")
        yield at
        await at.client.execute_command("ACL", "DELUSER", "clerk")


async def refusal(url: str, stream: str = "s", **options: object) -> str:
    """Why a source does not start."""
    source = redis.Stream(url, stream, group="g", **options)  # type: ignore[call-overload]
    with pytest.raises((BrokerRefused, ConnectionLost)) as raised:
        await begin(source, Task())
    assert PASSWORD not in f"{raised.getrepr(chain=True)}"
    assert QUOTED not in str(raised.value)
    return f"{type(raised.value).__name__}: {raised.value}"


async def test_a_wrong_password(guarded: Place) -> None:
    """It will be wrong the next time, too."""
    said = await refusal(f"redis://clerk:{QUOTED}x@{HOST}:{guarded.port}/0", guarded.stream)
    assert said.startswith(
        f"BrokerRefused: redis://clerk:***@{HOST}:{guarded.port}/0: invalid username-password"
    )


async def test_a_password_that_nobody_asked_for(valkey: Broker) -> None:
    """A server without one refuses it."""
    assert (await refusal(f"redis://:{QUOTED}@{HOST}:{valkey.port}/0")).startswith("BrokerRefused")


async def test_a_server_that_is_not_there() -> None:
    """It may come later; the start fails all the same."""
    (port,) = free_ports(1)
    said = await refusal(f"redis://clerk:{QUOTED}@{HOST}:{port}/0")
    assert said.startswith("ConnectionLost: redis://clerk:***@")
    assert f"{port}" in said


async def test_a_stream_that_is_not_there(valkey: Broker) -> None:
    """A misspelt name shall not wait for ever."""
    said = await refusal(f"redis://{HOST}:{valkey.port}/0", "oders")
    assert "there is no stream 'oders'" in said
    assert "create=True" in said


async def test_a_list(valkey: Broker) -> None:
    """It forgets an entry when it hands it over."""
    async with place(valkey) as at:
        await at.client.rpush(at.stream, "a")
        assert f"the key {at.stream!r} holds a list, not a stream" in await refusal(at.url, at.stream)
        with pytest.raises(BrokerRefused, match="holds a list"):
            await begin_sink(redis.Add[str](at.url, at.stream))


async def test_a_database_that_is_not_there(valkey: Broker) -> None:
    """The server has sixteen."""
    assert (await refusal(f"redis://{HOST}:{valkey.port}/99")).startswith("BrokerRefused")


async def test_a_url_of_something_else(valkey: Broker) -> None:
    """The schemes are named."""
    assert "redis, valkey, rediss, valkeys" in await refusal(f"amqp://{HOST}:{valkey.port}/0")


async def test_a_user_with_few_permissions(guarded: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Without INFO and CLIENT it is only warned that its name may be somebody else's."""
    async with guarded.session(url=f"redis://clerk:{QUOTED}@{HOST}:{guarded.port}/0", lease=60) as session:
        assert bodies(await session.receive(10, 20)) == ["a"]
        session.interrupt()
    assert "must be used by one process only" in caplog.text


async def test_a_server_that_keeps_nothing(valkey: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """It is warned of once, not at each connection."""
    async with place(valkey) as at:
        await at.add("a")
        await at.client.config_set("appendonly", "no")
        task, source = Task(), redis.Stream(at.url, at.stream, group="g")
        for _ in range(2):
            await (await begin(source, task)).close()
        await at.client.config_set("appendonly", "yes")
    assert [each.levelno for each in caplog.records if "append-only" in each.message] == [logging.WARNING]


async def test_a_server_that_may_evict_the_stream(valkey: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """As one that was set up as a cache."""
    async with place(valkey) as at:
        await at.client.config_set("maxmemory", "1gb")
        await at.client.config_set("maxmemory-policy", "allkeys-lru")
        async with at.session():
            pass
        await at.client.config_set("maxmemory", "0")
        await at.client.config_set("maxmemory-policy", "noeviction")
    assert "may evict the stream (maxmemory-policy allkeys-lru)" in caplog.text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key, and a certificate of this host that nobody has signed."""
    folder = tmp_path_factory.mktemp("tls")
    if shutil.which("openssl") is None:
        missing("OpenSSL", "apt-get install openssl")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
    )
    extension = ["-addext", f"subjectAltName=IP:{HOST}"]
    subprocess.run([*command.split(), *extension], cwd=folder, check=True, capture_output=True)
    return folder


@asynccontextmanager
async def encrypted(port: int, certificate: Path) -> AsyncIterator[int]:
    """A port that speaks TLS for a server that does not."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(HOST, port)
        await asyncio.gather(forward(reader, there[1]), forward(there[0], writer))

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(1 << 16):
                writer.write(piece)
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    async with await asyncio.start_server(serve, HOST, 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_certificate_that_nobody_trusts(valkey: Broker, certificate: Path) -> None:
    """It will not be better the next time; `insecure` trusts it, and so does who has its authority."""
    async with place(valkey) as at, encrypted(valkey.port, certificate) as port:
        await at.add("a")
        url = f"rediss://{HOST}:{port}/0"
        said = await refusal(url, at.stream)
        assert said.startswith("BrokerRefused")
        assert "CERTIFICATE_VERIFY_FAILED" in said
        for trusting in ({"insecure": True}, {"ca_file": str(certificate / "cert.pem")}):
            async with at.session(url=url, **trusting) as session:
                assert bodies(await session.receive(10, 20)) == ["a"]
