"""Connections to Redis or Valkey: redis-py with its replies as they come, and its errors in our words.

redis-py tries a command again when its connection is lost. A read whose reply is lost would be repeated, and the
entries of the first one would be delivered to nobody; an ``XADD`` would write its entry twice. So nothing is tried
again here: that is the driver's.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Awaitable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from stormlet.connect.address import Address
from stormlet.connect.secrets import scrubbed
from stormlet.errors import BrokerRefused, ConnectionLost, ConnectorError

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection
    from redis.exceptions import RedisError

Command: TypeAlias = Sequence[str | bytes | int]

PORT = 6379
BEAT = 5.0
"""Seconds after which a read that waits begins anew, so that a connection that has died unnoticed is found."""
ANSWERS_WITHIN = 5.0
"""Seconds within which a command that does not block is answered."""
DATABASE = re.compile(r"[0-9]*")
SCHEMES = {"redis": False, "valkey": False, "rediss": True, "valkeys": True}
"""Schemes of URLs; true: by TLS."""


class _Pipeline(Protocol):
    """The part of redis-py's pipelines that is used, with types."""

    def execute_command(self, *command: str | bytes | int) -> object: ...
    def execute(self, *, raise_on_error: bool) -> Awaitable[list[Any]]: ...


class _Redis(Protocol):
    """The part of redis-py's client that is used, with types."""

    def execute_command(self, *command: str | bytes | int) -> Awaitable[Any]: ...
    def pipeline(self, *, transaction: bool) -> AbstractAsyncContextManager[_Pipeline]: ...
    def aclose(self) -> Awaitable[None]: ...


class TlsOptions:
    """The ways in which a server's certificate is checked."""

    __slots__ = ("ca_file", "insecure")

    def __init__(self, *, insecure: bool = False, ca_file: str | None = None) -> None:
        self.insecure = insecure
        self.ca_file = ca_file


class Client:
    """One or more connections to a server."""

    def __init__(self, address: Address, tls: TlsOptions, *, blocks: bool = False) -> None:
        """``blocks`` asks for one connection, for commands that wait; once it is lost, it stays so."""
        self.is_lost = False
        """True once a command has failed."""
        self._address = address
        self._redis = _connected_once(address, tls) if blocks else _redis(address, tls, ANSWERS_WITHIN)

    async def call(self, *command: str | bytes | int) -> Any:
        """Return the reply to a command. Raises :class:`~stormlet.errors.BrokerRefused` if the user may not give it,
        and :class:`~stormlet.errors.ConnectionLost` for all other errors."""
        with self._lost():
            return await self.ask(*command)

    async def ask(self, *command: str | bytes | int) -> Any:
        """Return the reply to a command; raises redis-py's errors."""
        return await self._redis.execute_command(*command)

    async def calls(self, commands: Sequence[Command], *, at_once: bool = False) -> list[Any]:
        """Return the replies to these commands, sent together; those that were refused are exceptions. ``at_once`` lets
        nobody else in between. Raises :class:`~stormlet.errors.ConnectionLost`."""
        if not commands:
            return []
        with self._lost():
            async with self._redis.pipeline(transaction=at_once) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return await pipeline.execute(raise_on_error=False)

    async def close(self) -> None:
        """Close all connections, lost ones too."""
        from redis.exceptions import RedisError

        with suppress(RedisError, OSError):
            await self._redis.aclose()

    @contextmanager
    def _lost(self) -> Generator[None, None, None]:
        from redis.exceptions import NoPermissionError, RedisError

        try:
            yield
        except RedisError as error:
            self.is_lost = True
            kind = BrokerRefused if isinstance(error, NoPermissionError) else ConnectionLost
            raise kind(in_words(error, self._address)) from None


def _redis(address: Address, tls: TlsOptions, timeout: float, **more: Any) -> _Redis:
    from redis.asyncio import Redis as Client
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    password = address.password
    redis = Client(
        host=address.host or "localhost",
        port=address.port or PORT,
        db=address.path or 0,
        username=address.user or None,
        password=None if password is None else password.reveal(),
        ssl=SCHEMES[address.scheme],
        ssl_cert_reqs="none" if tls.insecure else "required",
        ssl_check_hostname=not tls.insecure,
        ssl_ca_certs=tls.ca_file,
        socket_timeout=timeout,
        socket_connect_timeout=ANSWERS_WITHIN,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        **more,
    )
    redis.response_callbacks.clear()
    return cast("_Redis", redis)


def _connected_once(address: Address, tls: TlsOptions) -> _Redis:
    from redis.exceptions import ConnectionError as Lost

    connections = 0

    async def connected(connection: AbstractConnection) -> None:
        # redis-py makes a connection anew without a word when it finds it closed before a command.
        nonlocal connections
        connections += 1
        if connections > 1:
            raise Lost("the connection was closed by the server")
        await connection.on_connect()

    return _redis(address, tls, BEAT + ANSWERS_WITHIN, max_connections=1, redis_connect_func=connected)


def check_address(address: Address) -> None:
    """Raise :class:`~stormlet.errors.BrokerRefused` for a URL of something else, or with parts that mean nothing
    here."""
    address.check_scheme(*SCHEMES)
    address.check_rest(path=True, instead="the path is the number of the database")
    if not DATABASE.fullmatch(address.path):
        raise BrokerRefused(
            f"{address}: the path of the URL is the number of the database, such as /0, and not {address.path!r}"
        )


@contextmanager
def connecting(address: Address) -> Generator[None, None, None]:
    """Say in our words why a connection cannot be made: law R8."""
    try:
        from redis.exceptions import RedisError
    except ModuleNotFoundError:
        raise BrokerRefused("redis-py is missing: pip install 'stormlet[redis]'") from None
    try:
        yield
    except RedisError as error:
        raise _reason(error, address) from None


def _reason(error: RedisError, address: Address) -> ConnectorError:
    words = in_words(error, address)
    return BrokerRefused(words) if _is_final(error) else ConnectionLost(words)


def _is_final(error: RedisError) -> bool:
    """True if the same will be refused again."""
    from redis import exceptions as of

    if isinstance(error, of.AuthenticationError | of.AuthorizationError):
        return True  # though redis-py counts them among the lost connections
    if isinstance(error, of.ConnectionError):
        return isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError)
    passing = (of.ReadOnlyError, of.ClusterDownError, of.OutOfMemoryError)
    return isinstance(error, of.ResponseError) and not isinstance(error, passing)


def in_words(error: BaseException, address: Address) -> str:
    """Return an error in words that name the server, and no secret (law R9)."""
    return scrubbed(f"{address}: {str(error) or type(error).__name__}", address.secrets)


def text(reply: bytes | str) -> str:
    """Return the text of a reply."""
    return reply.decode("utf-8", "backslashreplace") if isinstance(reply, bytes) else reply


def pairs(reply: Sequence[Any]) -> dict[str, Any]:
    """Return a reply of names and values, one after another, as a dict."""
    return {text(name): value for name, value in zip(reply[::2], reply[1::2], strict=True)}
