"""Addresses of brokers: a URL, whose password is kept apart, and where it comes from.

The address of a component is, in this order: the environment variable ``STORMLET_CONNECT_NAME_URL``, where NAME is the
id of the component in capitals with ``_`` for all that is no letter or digit; ``[connect.NAME]`` of the TOML file that
the command line was given; the URL in the code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from stormlet.connect.secrets import HIDDEN, Secret
from stormlet.errors import BrokerRefused, InvalidTopology

SETTINGS: dict[str, Mapping[str, Any]] = {}
"""``[connect.NAME]`` of the TOML file, by NAME."""


CONNECTION_SETTINGS: Final = ("url", "password_file", "password_env")
"""The values that may stand there."""

NO_TEXT: Final = "it is no text in UTF-8"

_AROUND_HOSTS: Final = re.compile(r"([^/?#]*//(?:[^/?#]*@)?)([^/?#]*)(.*)", re.DOTALL)
"""What is before the hosts of a URL, they, and what is behind them."""


class Address(msgspec.Struct, frozen=True):
    """The parts of a URL. Its text has no password."""

    scheme: str
    hosts: tuple[tuple[str, int | None], ...]
    """Each with its port; None if the URL has none."""
    path: str = ""
    """Without the first slash."""
    user: str | None = None
    password: Secret | None = None
    options: Mapping[str, str] = {}
    """The part behind the question mark."""
    target: str = ""
    """Path and options as they are written."""

    @property
    def host(self) -> str:
        """The first host."""
        return self.hosts[0][0]

    @property
    def port(self) -> int | None:
        """The port of the first host."""
        return self.hosts[0][1]

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """All that must not show."""
        return () if self.password is None else (self.password,)

    def check_scheme(self, *schemes: str) -> None:
        """Raise :class:`~stormlet.errors.BrokerRefused` unless it is one of these."""
        if self.scheme not in schemes:
            raise BrokerRefused(f"{self}: the URL must begin with one of {', '.join(schemes)}")

    def check_rest(
        self, *, options: Collection[str] = (), path: bool = False, several: bool = False, instead: str = ""
    ) -> None:
        """Raise :class:`~stormlet.errors.BrokerRefused` for a part of the URL that nobody would heed: an option that is
        none of these, a path, more than one host. ``instead`` says where other options go."""
        unknown = next((each for each in self.options if each not in options), None)
        if unknown is not None:
            known = ", ".join(f"?{each}=" for each in sorted(options))
            there_is = (
                f"there {'are' if len(options) > 1 else 'is'} only {known}" if options else "takes none"
            )
            raise BrokerRefused(
                f"{self}: the URL has the option {unknown!r}, and {there_is}{f'; {instead}' if instead else ''}"
            )
        if self.path and not path:
            raise BrokerRefused(f"{self}: the URL has the path {self.path!r}, which means nothing here")
        if len(self.hosts) > 1 and not several:
            raise BrokerRefused(f"{self}: the URL has {len(self.hosts)} hosts, and only one can be used here")

    def __str__(self) -> str:
        user = "" if self.user is None else f"{self.user}{'' if self.password is None else f':{HIDDEN}'}@"
        return f"{self.scheme}://{user}{self.servers}{f'/{self.path}' if self.path else ''}"

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"

    @property
    def servers(self) -> str:
        """The hosts with their ports, such as ``k1:9092,k2:9092``."""
        return ",".join(_server(host, port) for host, port in self.hosts)


def read_address(url: str, *, where: str, password: Secret | None = None) -> Address:
    """Read a URL; ``password`` counts before the one in it. Raises :class:`~stormlet.errors.InvalidTopology`, which
    names ``where`` and shows no password."""
    try:
        parts, servers = _split(url)
        hosts = tuple(_host(each) for each in servers.split(",") if each)
        user, inside = parts.username, parts.password
        kept = password or (None if inside is None else Secret(unquote(inside)))
    except ValueError:
        raise _unreadable(where) from None
    if "://" not in url or not parts.scheme or not (hosts or parts.path) or parts.fragment or _is_torn(parts):
        raise _unreadable(where)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = unquote(parts.path.removeprefix("/")) if hosts else unquote(parts.path)
    name = None if user is None else unquote(user)
    target = parts.path.removeprefix("/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, hosts or (("", None),), path, name, kept, options, target)


def _split(url: str) -> tuple[SplitResult, str]:
    """Return the parts of a URL, without the brackets of IPv6 addresses, and its hosts as they are written: Python
    takes only one host, and its newer releases refuse a bracket behind another. It takes a bracket of a password for
    one of them, too."""
    found = _AROUND_HOSTS.fullmatch(url)
    if found is None:
        return urlsplit(url), ""
    begin, servers, rest = found.groups()
    begin = begin.replace("[", "%5B").replace("]", "%5D")
    parts = urlsplit(begin + servers.replace("[", "").replace("]", "") + rest)
    return parts, servers if parts.netloc else ""


def _is_torn(parts: SplitResult) -> bool:
    """Return True if a password may have ended the part with the host too early, so that its rest would show."""
    may_have_password = "@" in parts.netloc or ":" in parts.netloc
    return may_have_password and "@" in parts.path + parts.query + parts.fragment


def _unreadable(where: str) -> InvalidTopology:
    return InvalidTopology(
        f"{where}: the URL cannot be read; it has the form scheme://user:password@host:port/path, where '/', '?', '#', "
        "'@' and '%' of a name or password are %2F, %3F, %23, %40 and %25, and an '@' behind the host is %40"
    )


def _host(text: str) -> tuple[str, int | None]:
    parts = urlsplit(f"//{text}")
    host = parts.hostname or ""
    if any(map(str.isspace, host)):
        raise ValueError("a host has no spaces")
    host.encode("idna")  # which each client does later, and raises what it likes for one that cannot be
    return host, parts.port


def _server(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def variable(component: str) -> str:
    """Return the name of the environment variable that has the URL of a component."""
    return f"STORMLET_CONNECT_{re.sub(r'[^A-Za-z0-9]', '_', component).upper()}_URL"


def found_address(component: str, url: str | None, password: Secret | None = None) -> Address:
    """Return the address of a component, wherever it is written. Raises :class:`~stormlet.errors.InvalidTopology` if
    that is nowhere."""
    settings = SETTINGS.get(component, {})
    given = os.environ.get(variable(component)) or settings.get("url") or url
    if given is None:
        raise InvalidTopology(
            f"{component!r} has no address: give it a URL, set {variable(component)}, or write url= under "
            f"[connect.{component}] of the TOML file"
        )
    return read_address(given, where=f"{component!r}", password=_password(component, settings) or password)


def _password(component: str, settings: Mapping[str, Any]) -> Secret | None:
    where = f"password_{{}} of [connect.{component}] of the TOML file"
    if (path := settings.get("password_file")) is not None:
        try:
            return Secret.from_file(path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else NO_TEXT
            raise InvalidTopology(f"{where.format('file')}: {path} cannot be read: {why}") from None
    if (name := settings.get("password_env")) is not None:
        try:
            return Secret.from_environment(name)
        except KeyError:
            raise InvalidTopology(f"{where.format('env')}: the environment has no variable {name}") from None
        except ValueError:
            raise InvalidTopology(f"{where.format('env')}: {name} cannot be read: {NO_TEXT}") from None
    return None
