"""Decisions on requests: from where, by which name, with which token one may come, and who may change something.

Without a token the page is for this machine alone. Every web site that somebody visits can have a browser ask servers
of its machine, and by rebinding of a name even read their answers. So then the name in ``Host`` must be one of
loopback, the peer must be there, and no proxy may stand between, which would speak for anybody. A token makes up for
all three: no foreign site has it.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final, cast
from urllib.parse import urlsplit

import msgspec

from stormlet.core.shortened import shortened
from stormlet.errors import InvalidConfiguration

LEAST_TOKEN: Final = 16
FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""The headers by which a proxy says that it is one, and for whom it speaks."""


class Request(msgspec.Struct, frozen=True):
    """The parts of a request that decide whether it is answered."""

    method: str
    headers: Mapping[str, str]
    """By their names in small letters."""
    peer: str | None
    """The address that it comes from; None for a socket that is a file."""


class Refusal(msgspec.Struct, frozen=True):
    """An answer to a request that may not be."""

    status: int
    words: str
    """The reason, and the way out."""


class Access(msgspec.Struct, frozen=True):
    """The choices of a host: its token, its names, and the permission to change something."""

    token: str | None = None
    hosts: frozenset[str] = frozenset()
    changes: bool = False
    """True if topologies may be switched and dead letters emitted again."""

    def refused(self, request: Request) -> Refusal | None:
        """Say why nobody may have anything by this request; None if the page itself may be given out, which tells
        nothing."""
        name = host_name(request.headers.get("host", ""))
        if self.token is None:
            return self._refused_without_token(request, name)
        if self.hosts and name not in self.hosts and not is_address(name):
            return Refusal(
                421, f"this is no name of the page: {name!r}; add it to hosts=, or use the address"
            )
        return None

    def _refused_without_token(self, request: Request, name: str) -> Refusal | None:
        if not is_loopback(name) and name not in self.hosts:
            return Refusal(
                421,
                f"the page is for this machine, and {name!r} is no name of it; use 127.0.0.1, or set a token",
            )
        if request.peer is not None and not is_loopback(request.peer):
            return Refusal(403, "the page is for this machine alone; for others, set a token")
        if any(name in request.headers for name in FORWARDED):
            return Refusal(
                403, "a proxy stands before the page, which is for this machine alone; set a token"
            )
        return None

    def refused_data(self, request: Request) -> Refusal | None:
        """Say why data is not given out, or nothing changed, by this request; None if it may be."""
        if self.token is not None and not self._has_token(request):
            return Refusal(
                401,
                "send the token as 'Authorization: Bearer TOKEN'; in a browser, open the page with #token=TOKEN",
            )
        if request.method in ("GET", "HEAD"):
            return None
        if not self.changes:
            return Refusal(
                403, "nothing may be changed here; start it with --ui-control, or app(changes=True)"
            )
        if not is_own(request):
            return Refusal(403, "changes come from the page itself; elsewhere, send its address as 'Origin'")
        return None

    def _has_token(self, request: Request) -> bool:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        wanted = (self.token or "").encode()
        # The whole comparison takes as long whatever is given, but for its length.
        return (
            hmac.compare_digest(given.strip().encode("utf-8", "replace"), wanted) and kind.lower() == "bearer"
        )


def names_of(hosts: object) -> frozenset[str]:
    """Return the names that the page is called by; raise :class:`~stormlet.errors.InvalidConfiguration` for anything
    but several texts: one text would be taken for its letters."""
    shown = shortened(hosts)
    is_several = isinstance(hosts, Iterable) and not isinstance(hosts, str)
    given = tuple(cast("Iterable[object]", hosts)) if is_several else (None,)
    if not all(isinstance(each, str) for each in given):
        raise InvalidConfiguration(f"hosts={shown} is no list of names, such as hosts=['orders.example']")
    return frozenset(str(each).lower() for each in given)


def checked(access: Access) -> Access:
    """Return it; raise :class:`~stormlet.errors.InvalidConfiguration` for a token that can be guessed, and for changes
    without one."""
    token = cast("object", access.token)
    if token is not None and not (isinstance(token, str) and len(token) >= LEAST_TOKEN and token.isascii()):
        raise InvalidConfiguration(
            f"the token of the page has at least {LEAST_TOKEN} characters of ASCII; "
            f"python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
        )
    if access.changes and access.token is None:
        raise InvalidConfiguration("a page that may change something needs a token; set token=")
    return access


def host_name(host: str) -> str:
    """Return the name in ``Host``, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    """Return True for an address, whose meaning nobody can change as that of a name, and for ``localhost``."""
    try:
        ip_address(name)
    except ValueError:
        return name == "localhost"
    return True


def is_loopback(name: str) -> bool:
    """Return True for the names and addresses of this machine to itself."""
    try:
        address = ip_address(name)
    except ValueError:
        return name == "localhost"
    # A socket for both versions has the addresses of the fourth inside those of the sixth.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_own(request: Request) -> bool:
    """Return True for what the page itself has asked for: the browser says so, and no script can."""
    if request.headers.get("sec-fetch-site") == "same-origin":
        return True
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    return bool(host) and urlsplit(origin).netloc == host
