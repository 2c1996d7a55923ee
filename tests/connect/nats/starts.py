"""A NATS with a configuration, and connections that are made or refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from stormlet.connect import nats
from stormlet.connect.address import read_address
from stormlet.connect.nats.connection import Connection, Tls
from stormlet.connect.secrets import Secret
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.servers import Nats
from tests.connect.sessions import context

PASSWORD = "pa/ss word"
QUOTED = "pa%2Fss%20word"


@contextmanager
def configured(configuration: str) -> Iterator[Nats]:
    """A NATS with more configuration."""
    with tempfile.TemporaryDirectory(prefix="broker-") as folder:
        file = Path(folder) / "nats.conf"
        file.write_text(configuration)
        with closing(Nats(Path(folder), "-c", str(file))) as server:
            server.start()
            yield server


async def refusal(url: str, password: Secret | None = None, **options: object) -> str:
    """Why a source does not start."""
    source = nats.Stream(url, "orders", consumer="c", **options)  # type: ignore[call-overload]
    with pytest.raises((BrokerRefused, ConnectionLost)) as raised:
        await source.begin(read_address(url, where="test", password=password), context())
    assert PASSWORD not in f"{raised.getrepr(chain=True)}"
    assert QUOTED not in str(raised.value)
    return f"{type(raised.value).__name__}: {raised.value}"


async def connects(url: str, tls: Tls | None = None, password: Secret | None = None) -> bool:
    """True if a connection can be made."""
    connection = Connection(read_address(url, where="test", password=password))
    await connection.open("test", tls or Tls())
    await connection.close()
    return True
