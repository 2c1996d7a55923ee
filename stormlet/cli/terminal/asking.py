"""Questions of a page's REST, with what is said when one fails."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import IO, Any, Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from stormlet.cli.running.page import TOKEN
from stormlet.cli.terminal.address import Address
from stormlet.core.shortened import cut

T = TypeVar("T")
PATIENCE: Final = 10.0
"""Seconds that an answer may take."""


class Unanswered(Exception):
    """A question without an answer; the message says why."""


class Refused(Unanswered):
    """Nobody may ask like that."""


class Gone(Unanswered):
    """The page does not have that topology or component now."""


class Server:
    """A page."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._open = build_opener(ProxyHandler({} if address.loopback else None), _Stay()).open

    async def ask(self, path: str, **query: str) -> Any:
        """Return the answer; raise :class:`Unanswered`."""
        return await in_thread(lambda: self._ask(f"{path}?{urlencode(query)}" if query else path))

    def _ask(self, path: str) -> Any:
        base, token = self.address.base, self.address.token
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        try:
            with self._open(Request(f"{base}{path}", headers=headers), timeout=PATIENCE) as response:
                content = response.read()
        except HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except (OSError, HTTPException) as error:
            raise Unanswered(f"{base} does not answer: {_reason(error)}") from None
        return self._read(content)

    def _read(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except ValueError:
            raise Unanswered(f"{self.address.base} is no page of stormlet: its answer is not JSON") from None

    def _refusal(self, error: HTTPError) -> Unanswered:
        base = self.address.base
        words = _words_of(error)
        if error.code == 401:
            state = "needs a token" if self.address.token is None else "refuses the token"
            return Refused(f"{base} {state}: set {TOKEN}, or end the address with '#token=…'")
        if 300 <= error.code < 400:
            return Refused(f"{base} leads to {cut(error.headers.get('location', ''))}; give that address")
        if words is None:
            return Unanswered(f"{base} is no page of stormlet: it answers {error.code} {cut(error.reason)}")
        if error.code == 404:
            return Gone(words)
        return (Refused if error.code < 500 else Unanswered)(f"{base} refuses: {words}")


class _Stay(HTTPRedirectHandler):
    """Follows no redirection, as the token would go along to wherever it leads."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Follow none."""


async def in_thread(call: Callable[[], T]) -> T:
    """Return the result of a call in a thread that nothing waits for when the program ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_to: Callable[[Any], None], value: object) -> None:
        if not future.done():
            set_to(value)

    def run() -> None:
        outcome: tuple[Callable[[Any], None], object]
        try:
            outcome = future.set_result, call()
        except BaseException as error:
            outcome = future.set_exception, error
        with suppress(RuntimeError):  # the loop is closed: the program ends
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="stormlet top", daemon=True).start()
    return await future


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, URLError) else error
    if isinstance(inner, TimeoutError):
        return f"nothing came within {PATIENCE:.0f} s"
    words = inner.strerror if isinstance(inner, OSError) else None
    return cut(words or str(inner) or type(inner).__name__)


def _words_of(error: HTTPError) -> str | None:
    """Return the reason that a page gives; None if it is none of ours."""
    try:
        return cut(str(json.loads(error.read())["errorMessage"]), 500)
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
