"""The address of a page, as somebody types or pastes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qs, urlsplit

from stormlet.cli.running.page import TOKEN
from stormlet.errors import InvalidConfiguration

USUAL: Final = "8080"
"""The port of the examples."""


@dataclass(frozen=True, slots=True)
class Address:
    """A page."""

    base: str
    """With a slash at its end; without the token, so that it can be shown."""
    token: str | None
    loopback: bool
    """True for this machine, which no proxy leads to."""


def read_address(text: str, environment: Mapping[str, str]) -> Address:
    """Read ``PORT``, ``HOST:PORT`` or a URL, with ``#token=…`` as the page has it, else with the token of the
    environment.

    Raises :class:`~stormlet.errors.InvalidConfiguration` for what is none of these.
    """
    spelled = f"http://127.0.0.1:{text}" if text.partition("#")[0].isdecimal() else text
    spelled = spelled if "://" in spelled else f"http://{spelled}"
    try:
        parts = urlsplit(spelled)
        host, _ = parts.hostname, parts.port  # reading the port checks it
    except ValueError:
        raise _wrong(text) from None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or not spelled.isprintable():
        raise _wrong(text)
    given = parse_qs(parts.fragment).get("token", [""])[0]
    token = given or environment.get(TOKEN) or None
    if token is not None and not (token.isascii() and token.isprintable()):
        raise InvalidConfiguration(f"the token of the page is ASCII without control characters; see {TOKEN}")
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"
    return Address(base, token, _is_loopback(host))


def _wrong(text: str) -> InvalidConfiguration:
    shown = text.partition("#")[0]
    return InvalidConfiguration(
        f"{shown!r} is no address of a page; write a port or the address that 'run --ui' prints, "
        f"such as {USUAL} or http://127.0.0.1:{USUAL}/"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
