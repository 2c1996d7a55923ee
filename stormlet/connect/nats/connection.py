"""One connection to a server of NATS, and what its errors mean.

The client would connect again by itself, and meanwhile take what is published for sent. It is told not to: that is the
driver's. Of a connection that is lost it does not tell those who wait for an answer, so answers are kept here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.driver.ending import end
from stormlet.connect.nats.login import check_login, login, read_login
from stormlet.connect.secrets import scrubbed
from stormlet.errors import BrokerRefused, ConnectionLost, ConnectorError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

SCHEMES: Final = ("nats", "tls")
OPTIONS: Final = ("creds", "domain", "ping")
"""The options that the URL may have."""
PORT: Final = 4222
CONNECTS_WITHIN: Final = 10
ANSWERS_WITHIN: Final = 10.0
"""Seconds within which a question is answered."""
CLOSES_WITHIN: Final = 1.0
"""Seconds that the end of a connection may take: nothing is left to be sent then."""
HANG_UPS: Final = ("connection lost", "connection reset", "eof", "broken pipe", "closed")
"""Words for a server that ends a connection without a reason."""
PING: Final = 5.0
"""Seconds between pings, unless the URL has ``?ping=``: after two without an answer the connection is lost."""
LOOKS_EVERY: Final = 0.25
"""Seconds between two looks at a client that may have closed itself without a word."""


class Tls(msgspec.Struct, frozen=True):
    """The ways in which a server's certificate is checked, and this client's own."""

    ca_file: str | None = None
    insecure: bool = False
    certificate: str | None = None
    key: str | None = None


class Connection:
    """A connection that is made once."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.error: ConnectionLost | None = None
        """The error of a connection that is lost."""
        self._concerned: list[Callable[[], None]] = []
        self._answers: dict[str, asyncio.Future[Msg]] = {}
        self._numbers = count(1)
        self._complaint = ""
        self._watching: asyncio.Task[None] | None = None
        self._client: Client

    # The life of a connection.

    async def open(self, name: str, tls: Tls) -> None:
        """Connect to the first host that answers. Raises :class:`~stormlet.errors.BrokerRefused` and
        :class:`~stormlet.errors.ConnectionLost`."""
        _check(self.address)
        self.address = read_login(self.address)
        check_login(self.address)
        lost = ConnectionLost(f"{self.address} has no host")
        for host, port in self.address.hosts:
            try:
                await self._connect(host, port or PORT, name, tls)
                break
            except ConnectionLost as error:
                lost = error
        else:
            raise lost
        self._watching = asyncio.get_running_loop().create_task(self._watch(), name="watch nats")
        # It may die of a reset in the middle of its own clean-up, and nobody would ask why.
        reading: asyncio.Task[None] | None = getattr(self._client, "_reading_task", None)
        if reading is not None:
            reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._inbox = self._client.new_inbox()
        await self.subscribe(f"{self._inbox}.*", self._answered)

    async def _connect(self, host: str, port: int, name: str, tls: Tls) -> None:
        from nats.aio.client import Client

        context, ping = _context(self.address, tls), _ping(self.address)
        self._client = client = Client()
        shown = f"[{host}]" if ":" in host else host
        try:
            with _translated(self.address):
                # With TLS the client would go on in the clear if the server does not offer it.
                await client.connect(
                    f"{self.address.scheme}://{shown}:{port}",
                    name=name,
                    tls=context,
                    allow_reconnect=False,
                    connect_timeout=CONNECTS_WITHIN,
                    ping_interval=ping,
                    error_cb=self._complain,
                    closed_cb=self._closed,
                    **login(self.address, lambda: _check_tls(self.address, context)),
                )
                _check_tls(self.address, context)
        except BaseException as error:
            await self.close()
            if (
                isinstance(error, ConnectionLost)
                and _hangs_up(error)
                and context.is_used
                and not tls.certificate
            ):
                # A server that asks for one hangs up behind its alert, which is then rarely read.
                raise ConnectionLost(f"{error}; does the server ask for a certificate= and key=?") from None
            raise

    async def _complain(self, error: Exception) -> None:
        if self._watching is None:  # it tries for ever otherwise
            raise error
        self._complaint = str(error)

    async def _closed(self) -> None:
        self._lose()

    async def _watch(self) -> None:
        while not self._client.is_closed:  # noqa: ASYNC110 - it does not always say so
            await asyncio.sleep(LOOKS_EVERY)
        self._lose()

    def _lose(self) -> None:
        if self.error is None and self._watching is not None:
            said = self._client.last_error or self._complaint or "the connection was closed"
            self.error = _lost(self.address, said)
            for concerned in self._concerned:
                concerned()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(self.error)
                    answer.exception()  # somebody may have given up waiting for it
            self._answers.clear()

    async def close(self) -> None:
        """End the connection, which may be lost already."""
        if self._watching is not None:
            await end([self._watching])
        from nats.errors import Error

        with suppress(Error, OSError, RuntimeError, TimeoutError):
            async with asyncio.timeout(CLOSES_WITHIN):
                await self._client.close()

    # Talking.

    @property
    def max_payload(self) -> int:
        """The bytes of the largest message that the server takes."""
        return self._client.max_payload

    def when_lost(self, concerned: Callable[[], None]) -> None:
        """Have this called when the connection is lost."""
        self._concerned.append(concerned)

    def check(self) -> None:
        """Raise :class:`~stormlet.errors.ConnectionLost` if it is lost."""
        if self.error is not None:
            raise ConnectionLost(str(self.error))

    def inbox(self) -> str:
        """Return a subject that nobody else has."""
        return self._client.new_inbox()

    async def subscribe(self, subject: str, came: Callable[[Msg], Awaitable[None]]) -> None:
        """Have a function called for each message; none is dropped for being too many."""
        with _translated(self.address):
            await self._client.subscribe(  # pyright: ignore[reportUnknownMemberType] - a future of nothing
                subject, cb=came, pending_msgs_limit=0, pending_bytes_limit=0
            )

    async def tell(self, subject: str, body: bytes = b"", reply: str = "") -> None:
        """Send a message that nobody answers."""
        with _translated(self.address):
            await self._client.publish(subject, body, reply)

    async def post(
        self, subject: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> asyncio.Future[Msg]:
        """Send a message; return its answer to come. The client's errors of a subject, header or size that cannot be
        are raised as they are."""
        self.check()
        number = str(next(self._numbers))
        answer = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            with _translated(self.address):
                await self._client.publish(
                    subject, body, f"{self._inbox}.{number}", None if headers is None else dict(headers)
                )
        except BaseException:
            self._answers.pop(number, None)
            raise
        return answer

    async def ask(self, subject: str, body: bytes = b"") -> Msg:
        """Send a message, and return the answer."""
        answer = await self.post(subject, body)
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                return await answer
        except TimeoutError:
            raise ConnectionLost(
                f"{self.address}: no answer within {ANSWERS_WITHIN:g} s {self._complaint}".rstrip()
            ) from None

    async def _answered(self, message: Msg) -> None:
        answer = self._answers.pop(message.subject.rpartition(".")[2], None)
        if answer is not None and not answer.done():
            answer.set_result(message)


def status_of(message: Msg) -> str:
    """Return the status of an answer that the server itself gives, such as ``503``: nobody is there. Empty for an
    answer of somebody."""
    return (message.headers or {}).get("Status", "")


def _check(address: Address) -> None:
    if find_spec("nats") is None:
        raise BrokerRefused("nats-py is missing: pip install 'stormlet[nats]'")
    address.check_scheme(*SCHEMES)
    address.check_rest(options=OPTIONS, several=True)


def _ping(address: Address) -> Any:
    try:
        ping = float(address.options.get("ping", PING))
    except ValueError:
        ping = 0.0
    if not 0 < ping < inf:
        raise BrokerRefused(f"{address}: ?ping= is a number of seconds")
    return ping


class _Context(ssl.SSLContext):
    """A context that knows if it was used."""

    is_used = False

    def wrap_bio(self, *arguments: Any, **more: Any) -> ssl.SSLObject:
        self.is_used = True
        return super().wrap_bio(*arguments, **more)


def _context(address: Address, tls: Tls) -> _Context:
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if tls.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif tls.ca_file is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(tls.ca_file)
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key, password="")  # or it would ask the terminal
    except OSError as error:
        files = " or ".join(each for each in (tls.ca_file, tls.certificate, tls.key) if each)
        raise BrokerRefused(f"{address}: {files} cannot be used: {error}") from None
    return context


def _hangs_up(error: ConnectionLost) -> bool:
    return any(words in str(error).lower() for words in HANG_UPS)


def _check_tls(address: Address, context: _Context) -> None:
    if address.scheme == "tls" and not context.is_used:
        raise BrokerRefused(f"{address}: the server does not offer TLS; nats:// is without it")


@contextmanager
def _translated(address: Address) -> Generator[None, None, None]:
    """Turn what the client raises into errors of connectors, without secrets (law R9); what it says of a message that
    cannot be sent is left as it is."""
    from nats.errors import BadHeaderError, BadSubjectError, Error, MaxPayloadError

    try:
        yield
    except (ConnectorError, BadHeaderError, BadSubjectError, MaxPayloadError):
        raise
    except (Error, OSError, RuntimeError) as error:
        raise _meaning(error, address) from None


def _meaning(error: Exception, address: Address) -> ConnectorError:
    said = str(error) or type(error).__name__
    if isinstance(error, TimeoutError) and error.errno is None:  # the client's own, which has no words
        said = f"no answer within {CONNECTS_WITHIN:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return BrokerRefused(f"{address}: its certificate is not valid: {error.verify_message}")
    if "authorization violation" in said.lower() or "authentication" in said.lower():
        return BrokerRefused(
            f"{address}: wrong user, password, token or key ({scrubbed(said, address.secrets)})"
        )
    return _lost(address, said)


def _lost(address: Address, error: Exception | str) -> ConnectionLost:
    said = str(error) or type(error).__name__
    return ConnectionLost(f"{address}: {scrubbed(said, address.secrets)}")
