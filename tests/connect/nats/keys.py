"""Keys and tokens of NATS, as its tool `nsc` makes them: an operator, who signs accounts, which sign users."""

from __future__ import annotations

import json
import os
from base64 import b32encode, urlsafe_b64encode
from hashlib import sha256
from time import time
from typing import Any

import nkeys

UNLIMITED = {
    **dict.fromkeys(["subs", "data", "payload", "imports", "exports", "conn", "leaf"], -1),
    **dict.fromkeys(["mem_storage", "disk_storage", "streams", "consumer"], -1),
    "wildcards": True,
}


def key(kind: int = nkeys.PREFIX_BYTE_USER) -> nkeys.KeyPair:
    """A new key."""
    return nkeys.from_seed(bytearray(nkeys.encode_seed(os.urandom(32), kind)))


def public(key: nkeys.KeyPair) -> str:
    """Its public part."""
    return key.public_key.decode()


def seed(key: nkeys.KeyPair) -> str:
    """Its secret part."""
    return bytes(key.seed).decode()


def jwt(issuer: nkeys.KeyPair, subject: nkeys.KeyPair, kind: str, *, ends: int = 0, **claims: Any) -> str:
    """What an issuer says of a subject."""
    said: dict[str, Any] = {
        "iat": int(time()),
        "iss": public(issuer),
        "sub": public(subject),
        "name": kind,
        "nats": {"type": kind, "version": 2, **claims},
    }
    if ends:
        said["exp"] = ends
    said["jti"] = b32encode(sha256(json.dumps(said).encode()).digest()).decode().rstrip("=")
    signed = f"{_encoded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_encoded(said)}"
    return f"{signed}.{urlsafe_b64encode(issuer.sign(signed.encode())).decode().rstrip('=')}"


def _encoded(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def credentials(jwt: str, seed: str) -> str:
    """A credentials file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        "************************* IMPORTANT *************************\n"
        "NKEY Seed printed below can be used to sign and prove identity.\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


class Operator:
    """An operator with one account."""

    def __init__(self) -> None:
        self._key = key(nkeys.PREFIX_BYTE_OPERATOR)
        self._system, self._account = key(nkeys.PREFIX_BYTE_ACCOUNT), key(nkeys.PREFIX_BYTE_ACCOUNT)

    @property
    def configuration(self) -> str:
        """What makes a server trust it."""
        accounts = (self._system, self._account)
        known = {
            public(each): jwt(self._key, each, "account", limits=UNLIMITED if each is self._account else {})
            for each in accounts
        }
        operator = jwt(self._key, self._key, "operator", system_account=public(self._system))
        preload = "\n".join(f"{name}: {token}" for name, token in known.items())
        return (
            f"operator: {operator}\nsystem_account: {public(self._system)}\nresolver: MEMORY\n"
            f"resolver_preload: {{\n{preload}\n}}\n"
        )

    def user(self, **options: int) -> str:
        """The credentials file of a new user."""
        who = key()
        return credentials(
            jwt(self._account, who, "user", subs=-1, data=-1, payload=-1, **options), seed(who)
        )
