"""The ways to log in at NATS: a user with a password, a token, the seed of an nkey, or a credentials file.

All but the first are one secret without a user, and are told apart by their form. A server never sees a seed: it gets
its own nonce, signed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.secrets import Secret
from stormlet.errors import BrokerRefused

SEED: Final = re.compile(r"SU[A-Z2-7]{56}")
"""The seed of a user's nkey."""
PART: Final = re.compile(r"-+BEGIN ([A-Z ]+)-+\s+(\S+)\s+-+END [A-Z ]+-+")
"""A part of a credentials file."""
FILE: Final = "creds"
"""The option of the URL that names a credentials file."""


def read_login(address: Address) -> Address:
    """Return the address with what its credentials file has as the password. Raises
    :class:`~stormlet.errors.BrokerRefused`."""
    path = address.options.get(FILE)
    if path is None:
        return address
    try:
        secret = Secret(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BrokerRefused(f"{address}: the credentials file {path} cannot be read: {why}") from None
    if not _is_file(secret.reveal()):
        raise BrokerRefused(f"{address}: {path} is no credentials file, which has a JWT and a seed")
    return msgspec.structs.replace(address, user=None, password=secret)


def check_login(address: Address) -> None:
    """Raise :class:`~stormlet.errors.BrokerRefused` for a user without a password, and for keys that cannot be used."""
    if address.user and address.password is None:
        raise BrokerRefused(
            f"{address.servers}: the URL has a user without a password; a token is written behind a colon, as in "
            f"{address.scheme}://:TOKEN@host"
        )
    secret = "" if address.user or address.password is None else address.password.reveal()
    if (_is_file(secret) or SEED.fullmatch(secret)) and find_spec("nkeys") is None:
        raise BrokerRefused("nkeys, which signs for NATS, is missing: pip install 'stormlet[nats]'")
    if _is_file(secret) and not _parts(secret):
        raise BrokerRefused(f"{address}: the credentials have no JWT, or no seed of a user")


def login(address: Address, before: Callable[[], None]) -> dict[str, Any]:
    """Return the arguments of the client's ``connect``. ``before`` is called before a password or token is sent."""
    password = address.password
    if password is None:
        return {}
    text = password.reveal()

    def reveal() -> str:
        before()
        return text

    if address.user:
        return {"user": address.user, "password": reveal}
    if SEED.fullmatch(text):
        return {"nkeys_seed_str": text}
    if _is_file(text):
        from nats.aio.client import RawCredentials

        return {"user_credentials": RawCredentials(_parts(text))}
    return {"token": reveal}


def _is_file(text: str) -> bool:
    return "BEGIN NATS USER JWT" in text


def _parts(text: str) -> str:
    """Return a credentials file as the client can read it; empty if it is not whole."""
    parts: dict[str, str] = dict(PART.findall(text))
    jwt, seed = parts.get("NATS USER JWT"), parts.get("USER NKEY SEED", "")
    if jwt is None or not SEED.fullmatch(seed):
        return ""
    return "\n".join(
        f"-----BEGIN {name}-----\n{part}\n------END {name}------\n"
        for name, part in (("NATS USER JWT", jwt), ("USER NKEY SEED", seed))
    )
