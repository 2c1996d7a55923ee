"""A sink that calls a service for each value.

Theory of operation
-------------------
An answer is about this request, or about all: no answer at all, 429 and 503 mean that the service takes nothing now.
Then the sink pauses: one request at a time is tried again, after a growing pause or what ``Retry-After`` says, and all
others wait, and with them those who feed the bolt. No message times out by that, or uses up its attempts. Health says
``reconnecting`` meanwhile.

A request that alone gets no answer would hold up the others for ever, such as one of which the server dies. So a
failure counts as the request's own where another one has succeeded since its last try. Under a limit of so many
requests a second that is the rule, and says nothing of the request: 429 never counts.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import uuid
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.driver.options import AtLeastOne, Positive, SinkOptions, checked
from stormlet.connect.http.answers import Answer, Meaning, meaning_of, seconds_of
from stormlet.connect.http.idempotency import key_of
from stormlet.connect.secrets import Secret, scrubbed
from stormlet.connect.session import DONE, Item, SinkContext, Written
from stormlet.connect.sink import Sink
from stormlet.core.settlement.reconnects import ReconnectPolicy
from stormlet.errors import BrokerGivenUp, BrokerRefused, ConnectionLost, ConnectorError, InvalidTopology

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

READ: Final = 2**16
"""Bytes of an answer that are read, so that the connection may be used again; that of a longer one is closed."""
READS_WITHIN: Final = 1.0
"""Seconds for which such an answer is read."""
SHOWN: Final = 300
"""Bytes of an answer that stand in the reason of a failure."""
TRIES: Final = 3


class RequestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the requests, as far as they are no functions."""

    method: str
    content_type: str
    ca_file: str | None
    insecure: bool


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the calls."""

    timeout: Positive
    tries: AtLeastOne


class Post(Sink[T]):
    """A call for each value: ``topology.bolt("tell", http.Post("https://shop.example/orders"), orders.shuffle())``. It
    needs ``stormlet[http]``.

    The body is the value's JSON, or the value where that is text or bytes. A user and a password in the URL are used as
    such; ``password=`` without a user is a bearer token.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        method: str = "POST",
        headers: Callable[[T], Mapping[str, str]] | Mapping[str, str] | None = None,
        path: Callable[[T], str] | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
        tries: int = TRIES,
        ca_file: str | None = None,
        insecure: bool = False,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``path`` is appended to that of the URL; ``timeout`` is for one call, ``tries`` for one attempt at a message.
        ``at_once`` is 20: so many calls are under way at a time, each of ``size`` 1. Raises
        :class:`~stormlet.errors.InvalidTopology` for a value that cannot be."""
        options.setdefault("size", 1)
        options.setdefault("at_once", 20)
        super().__init__(url, **options)
        self.method = method
        self.headers = headers
        self.path = path
        self.content_type = content_type
        checked(RequestSettings(method=method, content_type=content_type, ca_file=ca_file, insecure=insecure))
        self.calls = checked(CallSettings(timeout=timeout, tries=tries))
        self.ca_file = ca_file
        self.insecure = insecure

    @property
    def writes(self) -> str:
        """Host and path of the URL in the code."""
        return "" if self.url is None else self.url.rpartition("@")[2].partition("?")[0]

    async def begin(self, address: Address, context: SinkContext) -> PostSession:
        """Make the client, and see that the service answers anything at all."""
        if address.scheme not in ("http", "https"):
            raise InvalidTopology(f"{context.component!r}: {address.scheme!r} is no scheme of http.Post")
        session = PostSession(self, address, context, _client(self, address))
        try:
            await session.greet()
        except BaseException:
            await session.close()
            raise
        return session


def _client(sink: Post[Any], address: Address) -> aiohttp.ClientSession:
    try:
        import aiohttp
    except ImportError:
        raise ConnectorError("http.Post needs aiohttp: pip install 'stormlet[http]'") from None
    verified: ssl.SSLContext | bool = not sink.insecure
    if sink.ca_file is not None and not sink.insecure:
        verified = ssl.create_default_context(cafile=sink.ca_file)
    headers, secret = {"User-Agent": "stormlet"}, address.password
    if secret is not None and address.user is None:
        headers["Authorization"] = f"Bearer {secret.reveal()}"
    for login in _login(address):
        headers["Authorization"] = f"Basic {login}"
    settings = sink.settings
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=settings.size * settings.at_once, ssl=verified),
        timeout=aiohttp.ClientTimeout(total=sink.calls.timeout),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
    )


def _login(address: Address) -> list[str]:
    """The user and the password of a URL as they are sent; none without a user."""
    if address.user is None:
        return []
    login = f"{address.user}:{'' if address.password is None else address.password.reveal()}"
    return [b64encode(login.encode()).decode()]


class PostSession:
    """See :class:`~stormlet.connect.session.SinkSession`."""

    def __init__(
        self, sink: Post[Any], address: Address, context: SinkContext, client: aiohttp.ClientSession
    ) -> None:
        self._sink = sink
        self._address = address
        self._secrets = [*address.secrets, *map(Secret, _login(address))]
        self._context = context
        self._client = client
        path, mark, query = address.target.partition("?")
        self._base = f"{address.scheme}://{address.servers}/{path}"
        self._query = mark + query
        self._policy: ReconnectPolicy = sink.settings.reconnects
        self._clock = asyncio.get_running_loop().time
        self._failures = 0
        self._resume_at = 0.0
        self._refused_since: float | None = None
        self._done = 0
        self._one = asyncio.Lock()

    async def greet(self) -> None:
        """See that somebody answers. Raises :class:`~stormlet.errors.BrokerRefused` for a certificate, and
        :class:`~stormlet.errors.ConnectionLost`."""
        import aiohttp

        try:
            async with self._client.head(self._base + self._query, allow_redirects=False):
                return
        except aiohttp.ClientConnectorCertificateError:
            raise BrokerRefused(f"{self._address}: its certificate is not valid") from None
        except aiohttp.ClientSSLError:
            raise BrokerRefused(f"{self._address} does not speak TLS as we do") from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionLost(f"{self._address} {self._silence(error)}") from None

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Call the service for each, and return when all have an answer that counts."""
        return await asyncio.gather(*map(self._write, items))

    async def _write(self, item: Item) -> Written:
        try:
            body = self._sink.encode(item.value)
            url, headers = self._url(item.value), self._headers(item, body)
        except Exception as error:  # a value without JSON, or the user's functions
            return Written(f"{type(error).__name__}: {error}", permanent=True)
        tries = 0
        while True:
            done = self._done
            answer = await self._call(url, headers, body)
            if answer.meaning is Meaning.DONE:
                return DONE
            if answer.meaning is Meaning.NEVER:
                return Written(answer.words, permanent=True)
            is_limited = answer.meaning is Meaning.LIMITED
            tries += answer.meaning is Meaning.LATER or (self._done > done and not is_limited)
            if tries >= self._sink.calls.tries:
                return Written(answer.words)
            if answer.meaning is Meaning.LATER:
                pause = self._policy.pause(tries, self._context.random)
                await asyncio.sleep(max(pause, answer.retry_after))

    def _url(self, value: Any) -> str:
        more = "" if self._sink.path is None else self._sink.path(value)
        if not more:
            return self._base + self._query
        return f"{self._base.rstrip('/')}/{more.lstrip('/')}{self._query}"

    def _headers(self, item: Item, body: bytes) -> Mapping[str, str]:
        given = self._sink.headers
        headers = dict(given(item.value) if callable(given) else given or {})
        headers.setdefault("Idempotency-Key", key_of(item.origin, body) or uuid.uuid4().hex)
        headers.setdefault("Content-Type", self._sink.content_type)
        return headers

    # The pause of all, while the service is away.

    async def _call(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Call when it is this request's turn."""
        if self._failures:
            async with self._one:
                if self._failures:
                    await asyncio.sleep(max(0.0, self._resume_at - self._clock()))
                    return self._noted(await self._ask(url, headers, body))
        return self._noted(await self._ask(url, headers, body))

    def _noted(self, answer: Answer) -> Answer:
        if answer.meaning in (Meaning.AWAY, Meaning.LIMITED, Meaning.REFUSED):
            self._note_absence(answer)
        else:
            if self._failures:
                self._context.back()
            self._failures, self._refused_since = 0, None
            self._done += answer.meaning is not Meaning.LATER
        return answer

    def _note_absence(self, answer: Answer) -> None:
        now = self._clock()
        if answer.meaning is not Meaning.REFUSED:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since >= self._sink.settings.give_up:
            raise BrokerGivenUp(f"{self._address} {answer.words}")
        if now >= self._resume_at:  # those that were under way together are one failure
            self._failures += 1
        pause = self._policy.pause(self._failures, self._context.random)
        self._resume_at = max(self._resume_at, now + max(pause, answer.retry_after))
        self._context.away(answer.words)

    async def _ask(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        import aiohttp

        call = self._client.request(self._sink.method, url, data=body, headers=headers, allow_redirects=False)
        try:
            async with call as response:
                meaning = meaning_of(response.status)
                if meaning is Meaning.DONE:
                    await _read_out(response.content)
                    return Answer(meaning, "")
                said = await self._quoted(response.content)
        except aiohttp.InvalidURL:
            return Answer(Meaning.NEVER, "the path makes no URL")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Answer(Meaning.AWAY, self._silence(error))
        words = scrubbed(f"answers {response.status} {response.reason or ''}".rstrip(), self._secrets)
        words += f": {json.dumps(said)}" if said else ""
        return Answer(meaning, words, seconds_of(response.headers.get("Retry-After"), time.time()))

    async def _quoted(self, content: aiohttp.StreamReader) -> str:
        """Return the beginning of an answer, which may repeat what was sent to log in, without that (law R9)."""
        # Three times, as in a URL.
        longest = 3 * max((len(secret.reveal().encode()) for secret in self._secrets), default=0)
        said = bytearray()
        while len(said) < SHOWN + longest and (part := await content.read(SHOWN + longest - len(said))):
            said += part
        text = scrubbed(said.decode(errors="replace"), self._secrets)
        # Of a secret that is cut off the beginning is not known as such.
        return (text if content.at_eof() else text[: max(0, len(text) - longest)])[:SHOWN]

    def _silence(self, error: Exception) -> str:
        if isinstance(error, TimeoutError) and not str(error):
            return f"does not answer within {self._sink.calls.timeout:g} s"
        return f"does not answer: {str(error) or type(error).__name__}"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


async def _read_out(content: aiohttp.StreamReader) -> None:
    """Read an answer to its end, if that is near. It counts already, whatever becomes of the rest."""
    import aiohttp

    read = 0
    with suppress(aiohttp.ClientError, TimeoutError, OSError):
        async with asyncio.timeout(READS_WITHIN):
            while read < READ and (piece := await content.readany()):
                read += len(piece)
