"""The brokers and the proxy that the tests of connectors use: they do what a machine and a network may do to them."""

from __future__ import annotations

import socket

import pytest

from tests.brokers.processes import HOST, Broker, listens
from tests.brokers.proxy import Proxy

KINDS = ("rabbitmq", "valkey", "nats", "kafka")


def connected(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=20)


def answer(connection: socket.socket) -> bytes:
    """What Valkey says to a ping."""
    connection.sendall(b"PING\r\n")
    return connection.recv(100)


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_that_is_killed_starts_again(kind: str, request: pytest.FixtureRequest) -> None:
    """Nobody listens in between, and it has its port again."""
    broker: Broker = request.getfixturevalue(kind)
    broker.kill()
    assert not listens(broker.port)
    broker.start()
    assert listens(broker.port)


def test_a_proxy_passes_on_what_comes(valkey: Broker) -> None:
    """In both directions."""
    with Proxy(valkey.port) as proxy, connected(proxy.port) as client:
        assert answer(client) == b"+PONG\r\n"


def test_a_proxy_resets_connections(valkey: Broker) -> None:
    """The client hears of it, and may connect again."""
    with Proxy(valkey.port) as proxy:
        with connected(proxy.port) as client:
            answer(client)
            proxy.reset()
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        with connected(proxy.port) as client:
            assert answer(client) == b"+PONG\r\n"


def test_a_proxy_is_a_black_hole(valkey: Broker) -> None:
    """Nothing comes and nothing fails, until it passes on what it has held back."""
    with Proxy(valkey.port) as proxy, connected(proxy.port) as client:
        answer(client)
        proxy.swallow()
        client.settimeout(1)
        with pytest.raises(TimeoutError):
            answer(client)
        client.settimeout(20)
        proxy.pass_on()
        assert client.recv(100) == b"+PONG\r\n"


def test_a_proxy_refuses_connections(valkey: Broker) -> None:
    """Those that are there, and new ones."""
    with Proxy(valkey.port) as proxy, connected(proxy.port) as client:
        answer(client)
        proxy.refuse()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        with pytest.raises(ConnectionResetError), connected(proxy.port) as another:
            another.recv(1)
