"""One connection to Postgres, and what its errors mean."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.secrets import scrubbed
from stormlet.errors import BrokerRefused, ConnectionLost, ConnectorError

if TYPE_CHECKING:
    import asyncpg

SCHEMES: Final = ("postgres", "postgresql")
PORT: Final = 5432
CONNECTS_WITHIN: Final = 10.0
ANSWERS_WITHIN: Final = 10.0
"""Seconds within which a statement is done."""
CLOSES_WITHIN: Final = 2.0
NOT_ALLOWED: Final = "42501"
"""The error of a right that is not there, or is taken away."""
REFUSALS: Final = ("28", "3D", "3F", "42")
"""Classes of errors that a later connection meets again: authorization, database, schema, names and rights."""
OPTIONS: Final = ("host", "sslmode")
"""The options that the URL may have."""
ENCRYPTED: Final = ("require", "verify-ca", "verify-full")


class Tls(msgspec.Struct, frozen=True):
    """The ways in which a server's certificate is checked."""

    ca_file: str | None = None
    insecure: bool = False


class Connection:
    """A connection that is made once. Its statements wait for one another."""

    def __init__(self, address: Address, connection: asyncpg.Connection) -> None:
        self.address = address
        self._connection = connection
        self._alone = asyncio.Lock()

    async def rows(self, statement: str, *arguments: object) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a statement. Raises :class:`~stormlet.errors.ConnectionLost` for all errors."""
        with translated(self.address):
            return await self.ask(statement, *arguments)

    async def count(self, statement: str, *arguments: object) -> int:
        """Return the number of rows that a statement has changed. Raises :class:`~stormlet.errors.ConnectionLost`."""
        with translated(self.address):
            async with self._alone:
                done = await self._connection.execute(statement, *arguments)
        return int(done.rpartition(" ")[2])

    async def ask(
        self, statement: str, *arguments: object, within: float | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a statement, which may take ``within`` seconds; raises asyncpg's errors."""
        async with self._alone:
            return await self._connection.fetch(statement, *arguments, timeout=within)

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncGenerator[None]:
        """Have a transaction in which nobody else is at work on what has this name."""
        async with self._alone, self._connection.transaction():
            await self._connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", name)
            yield

    async def execute(self, statement: str) -> None:
        """Execute a statement in a transaction of :meth:`alone`."""
        await self._connection.execute(statement)

    async def listen(self, channel: str, news: Callable[[], None]) -> None:
        """Have this called for each notification, and when the connection is lost."""
        with translated(self.address):
            async with self._alone:
                await self._connection.add_listener(channel, lambda *_: news())
        self._connection.add_termination_listener(lambda *_: news())

    @property
    def is_lost(self) -> bool:
        """True once the connection has ended."""
        return self._connection.is_closed()

    async def close(self) -> None:
        """End it, lost or not."""
        import asyncpg

        try:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                await self._connection.close(timeout=CLOSES_WITHIN)
        finally:
            self._connection.terminate()


async def connected(address: Address, name: str, tls: Tls) -> Connection:
    """Connect to the first host that takes writes; ``name`` is shown by ``pg_stat_activity``. Raises
    :class:`~stormlet.errors.BrokerRefused` and :class:`~stormlet.errors.ConnectionLost`."""
    if find_spec("asyncpg") is None:
        raise BrokerRefused("asyncpg is missing: pip install 'stormlet[postgres]'")
    address.check_scheme(*SCHEMES)
    address.check_rest(options=OPTIONS, path=True, several=True, instead="authorities go to ca_file=")
    import asyncpg

    folder = address.options.get("host")
    password = address.password
    with translated(address, connecting=True):
        connection = await asyncpg.connect(
            host=[folder] if folder else [host or "localhost" for host, _ in address.hosts],
            port=[port or PORT for _, port in address.hosts],
            user=address.user,
            password=None if password is None else password.reveal(),
            database=address.path.removeprefix("/") or None,
            ssl=_ssl(address, tls),
            timeout=CONNECTS_WITHIN,
            command_timeout=ANSWERS_WITHIN,
            server_settings={"application_name": name[:63]},
            target_session_attrs="read-write",
        )
    return Connection(address, connection)


def _ssl(address: Address, tls: Tls) -> ssl.SSLContext | str | None:
    mode = address.options.get("sslmode", "require" if tls.ca_file or tls.insecure else "prefer")
    if mode not in ENCRYPTED:
        return None if address.options.get("host") else mode
    context = ssl.create_default_context(cafile=tls.ca_file)
    if tls.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def translated(address: Address, *, connecting: bool = False) -> Generator[None]:
    """Turn what the client raises into errors of connectors, without secrets (law R9)."""
    import asyncpg

    try:
        yield
    except ConnectorError:
        raise
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        said = scrubbed(_said(error, CONNECTS_WITHIN if connecting else ANSWERS_WITHIN), address.secrets)
        refused = _is_final(error) and (connecting or _sqlstate(error) == NOT_ALLOWED)
        raise (BrokerRefused if refused else ConnectionLost)(f"{address}: {said}") from None


def _said(error: Exception, within: float) -> str:
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"no answer within {within:g} s"
    return str(error) or type(error).__name__


def _is_final(error: Exception) -> bool:
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    return _sqlstate(error).startswith(REFUSALS)


def _sqlstate(error: Exception) -> str:
    return str(getattr(error, "sqlstate", None) or "")


def quoted(name: str) -> str:
    """Return the name of a table, with its schema if it has one, as SQL writes it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
