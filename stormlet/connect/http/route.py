"""A route whose requests are messages: each is answered with the outcome of its tree.

It is an ASGI application without a framework, to be mounted in one, or to be the whole of one. The topology runs beside
it in the same loop, and belongs to the host.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

import msgspec

from stormlet.connect.decoding import decoder
from stormlet.connect.http.idempotency import KeyReused, Remembered
from stormlet.connect.secrets import Secret
from stormlet.connect.session import Delivery
from stormlet.core.outcomes import Failure, FailureKind, TupleFailed
from stormlet.errors import TopologyCrashed, TopologyStopping
from stormlet.model.streams import Stream
from stormlet.runtime.run.handle import Running

logger = logging.getLogger("stormlet.connect")

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

RETRY: Final = {"retry-after": "1"}
LONGEST_KEY: Final = 255


class Hmac(msgspec.Struct, frozen=True):
    """The signature that a request must have: the HMAC of its body, in hexadecimal digits."""

    secret: Secret
    header: str = "X-Hub-Signature-256"
    prefix: str = "sha256="
    """The text before the digits."""
    digest: str = "sha256"

    def fits(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """Return True if the body is signed with the secret."""
        wanted = hmac.new(self.secret.reveal().encode(), body, self.digest).hexdigest()
        given = headers.get(self.header.lower(), "")
        return hmac.compare_digest(f"{self.prefix}{wanted}".encode(), given.encode())


class Response(msgspec.Struct, frozen=True):
    """An answer to a request."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}

    @property
    def is_final(self) -> bool:
        """True if the same request would get it again."""
        return self.status < 500


class BadRequest(Exception):
    """A request that is answered without a tree."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class Route(Generic[T]):
    """An ASGI application that emits the body of each POST on a stream of ``running.emit``, and answers when its tree
    is done::

        orders = topology.spout("orders", outputs=Order)
        route = http.Route(orders, as_=Order, collect=receipts)
        app = Starlette(routes=[Mount("/orders", route)], lifespan=lifespan)

        async def lifespan(app):
            async with topology.run() as running:
                with route.serving(running):
                    yield

    200 with the values that the tree sent to ``collect``, or with a ``problem`` if they have no JSON form; 400 for a
    body that is no ``as_``, 401 without the ``signature``, 405, 413; 422 for a ``Reject``; 500 if a bolt failed in all
    ``attempts``; 503 with ``Retry-After`` if there is no room within ``patience`` seconds or the topology ends; 504 if
    the message timed out.

    Requests with the same ``Idempotency-Key`` are one message, as long as its answer is among the last ``remember``
    ones: one that comes meanwhile waits for it. A client that leaves does not end its tree.
    """

    def __init__(
        self,
        stream: Stream[T],
        *,
        as_: Any,
        collect: Stream[Any] | None = None,
        attempts: int = 1,
        signature: Hmac | None = None,
        patience: float = 0.05,
        max_body_bytes: int = 2**20,
        remember: int = 10_000,
        encoding: str = "json",
    ) -> None:
        self._stream = stream
        self._collect = collect
        self._attempts = attempts
        self._signature = signature
        self._patience = patience
        self._most = max_body_bytes
        self._decode = decoder(as_, encoding)
        self._answers = Remembered[Response](remember, lambda response: response.is_final)
        self._running: Running | None = None

    @contextmanager
    def serving(self, running: Running) -> Generator[None]:
        """Hand requests to this run in the block; before and after it they get 503."""
        self._running = running
        try:
            yield
        finally:
            self._running = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI has it."""
        if scope["type"] != "http":
            raise NotImplementedError(f"a route of stormlet takes http and no {scope['type']}")
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        try:
            response = await self._respond(scope["method"], headers, receive)
        except BadRequest as error:
            response = error.response
        sent = {
            "content-type": "application/json",
            **response.headers,
            "content-length": str(len(response.body)),
        }
        encoded = [(name.encode(), value.encode()) for name, value in sent.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": encoded})
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, method: str, headers: Mapping[str, str], receive: Receive) -> Response:
        if method != "POST":
            return problem(405, "POST a message here", {"allow": "POST"})
        body = await self._body(headers, receive)
        if self._signature is not None and not self._signature.fits(body, headers):
            return problem(401, "the signature does not fit the body")
        key = headers.get("idempotency-key", "")
        if len(key) > LONGEST_KEY:
            return problem(400, f"an Idempotency-Key has at most {LONGEST_KEY} characters")
        if not key:
            return await self._process(body, headers)
        try:
            return await self._answers.answer(key, body, lambda: self._process(body, headers))
        except KeyReused as error:
            return problem(422, str(error))

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """Return the body; raise :class:`BadRequest` as soon as it is too large."""
        given = headers.get("content-length", "")
        announced = int(given) if given.isdecimal() else 0
        pieces, length, more = list[bytes](), 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadRequest(problem(400, "the body has no end"))
            pieces.append(message.get("body", b""))
            length += len(pieces[-1])
            if max(length, announced) > self._most:
                raise BadRequest(problem(413, f"a body has at most {self._most:,} bytes"))
            more = message.get("more_body", False)
        return b"".join(pieces)

    async def _process(self, body: bytes, headers: Mapping[str, str]) -> Response:
        try:
            value = self._decode(Delivery(body=body, headers=headers))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return problem(400, str(error))
        if self._running is None:
            return problem(503, "not ready", RETRY)
        try:
            outcome = await self._outcome(self._running, value)
        except TimeoutError:
            return problem(503, "overloaded", RETRY)
        except (TopologyStopping, TopologyCrashed):
            return problem(503, "stopping", RETRY)
        except TupleFailed as error:
            return response_to(error.failure)
        return self._done(outcome)

    def _done(self, outcome: object) -> Response:
        """Return the answer of a tree that is done, whatever it has sent to ``collect``: no client may try that again,
        and its key remembers it."""
        try:
            return Response(200, msgspec.json.encode(outcome))
        except Exception as error:
            component = "" if self._collect is None else self._collect.component
            logger.error(
                "%s: what it sent has no JSON form, so that the client of a route hears that its message is done, and "
                "no values: %s: %s",
                component,
                type(error).__name__,
                error,
            )
            return problem(200, f"done, but what {component} sent has no JSON form")

    async def _outcome(self, running: Running, value: T) -> object:
        async with asyncio.timeout(self._patience):
            if self._collect is None:
                tree = await running.emit(self._stream, value, attempts=self._attempts)
            else:
                tree = await running.emit(self._stream, value, collect=self._collect, attempts=self._attempts)
        outcome: object = await tree
        return outcome


def response_to(failure: Failure) -> Response:
    """Return the answer to a request whose tree failed. Its client hears what a ``Reject`` says and no other words of
    the code."""
    if failure.permanent:
        return problem(422, failure.reason)
    if failure.kind is FailureKind.FAILED:
        return problem(500, f"failed in {failure.component}")
    if failure.kind is FailureKind.TIMEOUT:
        return problem(504, "not done in time")
    return problem(503, "interrupted", RETRY)


def problem(status: int, words: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that has no values of a tree."""
    return Response(status, msgspec.json.encode({"problem": words}), headers or {})
