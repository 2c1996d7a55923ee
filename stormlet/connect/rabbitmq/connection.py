"""One connection to RabbitMQ, and what its errors mean."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, cast

from stormlet.connect.address import Address
from stormlet.connect.secrets import scrubbed
from stormlet.errors import BrokerRefused, ConnectionLost, ConnectorError

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

    from stormlet.connect.rabbitmq.frames import ForgivingConnection

HEARTBEAT: Final = "15"
"""Seconds of silence, unless the URL has ``?heartbeat=``: after three times as many the connection is lost."""
MOST_SECONDS: Final = 65_534
"""The client takes more for no heartbeats at all."""
SECONDS: Final = ("heartbeat", "timeout")
OPTIONS: Final = (*SECONDS, "auth", "cadata", "cafile", "capath", "certfile", "keyfile", "no_verify_ssl")
"""The options of the client that the URL may have."""
CONNECTS_WITHIN: Final = 30.0
CLOSES_WITHIN: Final = 5.0
"""Seconds that the end of a connection may take, which may be lost without anybody having noticed."""


async def connected(address: Address, name: str) -> ForgivingConnection:
    """Connect to the first host that answers; ``name`` is shown by RabbitMQ's own pages.

    Raises :class:`~stormlet.errors.BrokerRefused` and :class:`~stormlet.errors.ConnectionLost`, and
    :class:`ImportError` with the way out if aiormq is not installed.
    """
    require_client()
    address.check_scheme("amqp", "amqps")
    address.check_rest(options=OPTIONS, path=True, several=True)
    for option in SECONDS:
        given = address.options.get(option, "0")
        if not given.isdecimal() or int(given) > MOST_SECONDS:  # the client would take none for it
            raise BrokerRefused(f"{address}: ?{option}= is a number of whole seconds, {MOST_SECONDS} at most")
    if not address.host:
        raise BrokerRefused(f"{address}: the URL has no host")
    lost = ConnectionLost(f"{address} has no host")
    for host, port in address.hosts:
        try:
            return await _connected_to(host, port, address, name)
        except ConnectionLost as error:
            lost = error
    raise lost


def require_client() -> None:
    """Raise :class:`ImportError` with the way out if aiormq is not installed."""
    if find_spec("aiormq") is None:
        raise ImportError("RabbitMQ needs aiormq: pip install 'stormlet[rabbitmq]'")


async def _connected_to(host: str, port: int | None, address: Address, name: str) -> ForgivingConnection:
    from yarl import URL

    from stormlet.connect.rabbitmq.frames import ForgivingConnection  # it needs the client

    url = URL.build(
        scheme=address.scheme,
        host=host,
        port=port,
        user=address.user,
        password=None if address.password is None else address.password.reveal(),
        path=f"/{address.path or '/'}",
        query={"heartbeat": HEARTBEAT, **address.options, "name": name},
    )
    with translated(address, connecting=True), _logged_by_us():
        # The client waits for ever for a host that accepts and then says nothing.
        async with asyncio.timeout(CONNECTS_WITHIN):
            try:
                connection = ForgivingConnection(url)
                await connection.connect()  # pyright: ignore[reportUnknownMemberType] - its decorator has none
            except ValueError as error:
                if isinstance(error, OSError):  # of a certificate
                    raise
                words = scrubbed(str(error), address.secrets)
                raise BrokerRefused(f"{address}: the client cannot use the URL: {words}") from None
            return connection


_ours: ContextVar[bool] = ContextVar("connecting to RabbitMQ", default=False)


def _is_not_ours(_: logging.LogRecord) -> bool:
    return not _ours.get()


@contextmanager
def _logged_by_us() -> Generator[None]:
    """Have the client not log an error for each attempt, which it raises as well, and which is logged once (law R8)."""
    logging.getLogger("aiormq.connection").addFilter(_is_not_ours)  # once, however often it is added
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


async def close(connection: AbstractConnection) -> None:
    """End a connection, which may be lost already."""
    from aiormq.exceptions import AMQPError, ConnectionClosed

    with suppress(AMQPError, OSError, RuntimeError, TimeoutError):
        async with asyncio.timeout(CLOSES_WITHIN):
            # By default whoever still waits for an answer would see a cancellation that nobody has asked for.
            await connection.close(ConnectionClosed(320, "closed by this side"))


@contextmanager
def translated(address: Address, *, connecting: bool = False) -> Generator[None]:
    """Turn what the client raises into errors of connectors, without secrets."""
    from aiormq.exceptions import AMQPError

    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # A client that misses heartbeats cancels its own reader, and hands that on to all who wait for an answer.
        raise meaning(error, address, connecting=connecting) from None
    except (AMQPError, OSError, RuntimeError) as error:
        raise meaning(error, address, connecting=connecting) from None


def meaning(error: BaseException, address: Address, *, connecting: bool = False) -> ConnectorError:
    """Return what an error of the client means. Later than while ``connecting``, only a right that was taken away is a
    refusal."""
    from aiormq.exceptions import ChannelAccessRefused

    refused = _refusal(error, address) if connecting or isinstance(error, ChannelAccessRefused) else ""
    if refused:
        return BrokerRefused(f"{address}: {refused}")
    return ConnectionLost(f"{address}: {scrubbed(_said(error), address.secrets)}")


def _refusal(error: BaseException, address: Address) -> str:
    from aiormq import exceptions

    match error:
        case exceptions.AuthenticationError():
            # Its text has the ways of both sides.
            way = address.options.get("auth", "plain")
            return f"?auth={way} is not among the ways to log in ({scrubbed(str(error), address.secrets)})"
        case exceptions.ProbableAuthenticationError():
            said = scrubbed(str(error), address.secrets)
            return f"wrong user or password for {address.user or 'guest'!r} ({said})"
        case exceptions.ChannelNotFoundEntity() | exceptions.ChannelAccessRefused():
            return scrubbed(str(error), address.secrets)
        case exceptions.InvalidFrameError():
            # All that is left of the broker's no to Connection.Open.
            return f"no virtual host {address.path or '/'!r} for {address.user or 'guest'!r}"
        case FileNotFoundError() if "cafile" in address.options:
            return f"there is no file {address.options['cafile']!r}, which ?cafile= names"
        case OSError(__cause__=ssl.SSLCertVerificationError() as cause):
            return f"its certificate is not valid: {cause.verify_message}"
        case OSError(__cause__=ssl.SSLError(reason="WRONG_VERSION_NUMBER")):
            return "this port does not speak TLS: amqp:// is without it"
        case _:
            return ""


def _said(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "no heartbeat has come"
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {CONNECTS_WITHIN:g} s"
    return str(error) or type(error).__name__


def close_reason(channel: AbstractChannel) -> BaseException | None:
    """Return the error that has closed a channel; None if it is open."""
    if not channel.is_closed:
        return None
    closing = closing_of(channel)
    return asyncio.CancelledError() if closing.cancelled() else closing.exception()


def closing_of(channel: AbstractChannel) -> asyncio.Future[object]:
    """Return the future that is done when a channel is closed, with the reason."""
    return cast("asyncio.Future[object]", channel.closing)  # pyright: ignore[reportUnknownMemberType] - of nothing
