"""The start of a source or a sink at NATS: refused with a sentence that says why, and no secret in it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stormlet.connect.nats.connection import Tls
from stormlet.connect.secrets import Secret
from tests.brokers.processes import HOST, free_ports
from tests.brokers.servers import Nats
from tests.connect.nats.kit import Server
from tests.connect.nats.starts import PASSWORD, QUOTED, configured, connects, refusal

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Nats]:
    """A NATS that knows a user `clerk`, and one who may do nothing."""
    users = f'{{user: clerk, password: "{PASSWORD}"}}, {{user: guest, password: g, permissions: {{publish: "x"}}}}'
    with configured(f"authorization {{ users: [{users}] }}") as server:
        yield server


@pytest.fixture(scope="module")
def encrypted(certificate: tuple[str, str]) -> Iterator[Nats]:
    """A NATS with TLS."""
    with configured(f'tls {{ cert_file: "{certificate[0]}", key_file: "{certificate[1]}" }}') as server:
        yield server


async def test_a_wrong_password(guarded: Nats) -> None:
    """It will be wrong the next time, too."""
    said = await refusal(f"nats://clerk:{QUOTED}x@{HOST}:{guarded.port}")
    assert said.startswith(f"BrokerRefused: nats://clerk:***@{HOST}:{guarded.port}: wrong user, password")


async def test_the_right_password(guarded: Nats) -> None:
    """Whatever letters it has, in the URL or beside it."""
    assert await connects(f"nats://clerk:{QUOTED}@{HOST}:{guarded.port}")
    assert await connects(f"nats://clerk@{HOST}:{guarded.port}", password=Secret(PASSWORD))


async def test_no_password_where_one_is_asked_for(guarded: Nats) -> None:
    """It is refused as a wrong one."""
    assert "wrong user, password" in await refusal(f"nats://{HOST}:{guarded.port}")


async def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A black hole, or another program that waits to be greeted."""
    monkeypatch.setattr("stormlet.connect.nats.connection.CONNECTS_WITHIN", 0.2)
    kept = list[asyncio.StreamWriter]()
    async with await asyncio.start_server(lambda _, writer: kept.append(writer), HOST, 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        said = await refusal(f"nats://{HOST}:{port}")
        for writer in kept:
            writer.close()
    assert said == f"ConnectionLost: nats://{HOST}:{port}: no answer within 0.2 s"


async def test_a_user_who_may_not(guarded: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does not answer such a question; it only complains."""
    monkeypatch.setattr("stormlet.connect.nats.connection.ANSWERS_WITHIN", 3.0)
    said = await refusal(f"nats://guest:g@{HOST}:{guarded.port}")
    assert 'permissions violation for publish to "$js.api' in said.lower()


async def test_a_token() -> None:
    """It is written behind a colon, so that it is a secret; elsewhere it would be shown."""
    with configured(f'authorization {{ token: "{PASSWORD}" }}') as server:
        assert await connects(f"nats://:{QUOTED}@{HOST}:{server.port}")
        assert await connects(f"nats://{HOST}:{server.port}", password=Secret(PASSWORD))
        assert "wrong user, password, token or key" in await refusal(
            f"nats://:x{QUOTED}@{HOST}:{server.port}"
        )
        said = await refusal(f"nats://{QUOTED}@{HOST}:{server.port}")
        assert "a token is written behind a colon" in said


async def test_a_server_that_is_not_there() -> None:
    """It may come later; the start fails all the same, and soon."""
    (port,) = free_ports(1)
    said = await refusal(f"nats://clerk:{QUOTED}@{HOST}:{port}")
    assert said.startswith(f"ConnectionLost: nats://clerk:***@{HOST}:{port}")


async def test_the_first_of_several_servers_that_is_there(server: Server) -> None:
    """The others are passed over."""
    (port,) = free_ports(1)
    assert await connects(f"nats://{HOST}:{port},{server.url.partition('//')[2]}")


async def test_a_server_without_jetstream() -> None:
    """It keeps nothing."""
    with (
        tempfile.TemporaryDirectory(prefix="broker-") as folder,
        closing(Nats(Path(folder), keeps=False)) as it,
    ):
        it.start()
        said = await refusal(it.url)
        assert "nobody answers $JS.API.STREAM.INFO." in said
        assert "JetStream is not enabled there, or not ready: start the server with -js" in said


async def test_a_stream_that_is_not_there(server: Server) -> None:
    """A misspelt name shall not wait for ever."""
    said = await refusal(server.url)
    assert "there is no stream 'orders'" in said
    assert "create=" in said


async def test_another_scheme(server: Server) -> None:
    """With those that there are."""
    assert "must begin with one of nats, tls" in await refusal(f"http://{HOST}")


async def test_a_certificate_that_nobody_knows(encrypted: Nats) -> None:
    """It is not trusted, whatever the scheme is."""
    for scheme in ("tls", "nats"):
        said = await refusal(f"{scheme}://clerk:{QUOTED}@{HOST}:{encrypted.port}")
        assert said.startswith("BrokerRefused")
        assert "certificate is not valid" in said


async def test_a_certificate_of_a_known_authority(encrypted: Nats, certificate: tuple[str, str]) -> None:
    """It is trusted for its own host; any is only if that is wanted."""
    url = f"tls://{HOST}:{encrypted.port}"
    assert await connects(url, Tls(ca_file=certificate[0]))
    assert await connects(url, Tls(insecure=True))
    elsewhere = await refusal(f"tls://localhost:{encrypted.port}", ca_file=certificate[0])
    assert "certificate is not valid" in elsewhere


async def test_a_server_that_offers_no_tls(guarded: Nats) -> None:
    """The password is not sent in the clear: the client would have gone on without a word."""
    said = await refusal(f"tls://clerk:{QUOTED}@{HOST}:{guarded.port}")
    assert "does not offer TLS" in said
    assert said.startswith("BrokerRefused")


async def test_a_server_that_offers_no_tls_to_who_has_no_password(server: Server) -> None:
    """It is refused before anything is asked for."""
    assert "does not offer TLS" in await refusal(server.url.replace("nats:", "tls:"))
