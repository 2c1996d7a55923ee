"""Questions to a server before it is used: its version, whether it keeps what it is given, and what is at a key."""

from __future__ import annotations

from collections.abc import Callable

from stormlet.connect.redis.client import Client, text
from stormlet.errors import BrokerRefused

OLDEST = (7, 0)
"""The first version whose ``XAUTOCLAIM`` names the entries that were deleted. Valkey calls itself 7.2.4."""

Warn = Callable[[str], None]


async def check_server(client: Client, warn: Warn) -> None:
    """Refuse a server that is too old, and warn of one that may lose what it has said to have."""
    from redis.exceptions import NoPermissionError

    try:
        info = _read_info(text(await client.ask("INFO")))
    except NoPermissionError:
        return
    version = info.get("redis_version", "")
    if version and tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise BrokerRefused(f"Redis {version} is too old: it must be 7.0 or later, or Valkey")
    if info.get("cluster_enabled") == "1":
        warn("a Redis Cluster is used by one of its nodes: all streams must be on this one")
    if info.get("aof_enabled") == "0":
        warn("the server has no append-only file (appendonly no): when it dies, it loses entries and acks")
    policy = info.get("maxmemory_policy", "")
    if info.get("maxmemory", "0") != "0" and policy.startswith("allkeys"):
        warn(f"the server may evict the stream (maxmemory-policy {policy}): use noeviction or volatile-…")


def _read_info(info: str) -> dict[str, str]:
    lines = (line.partition(":") for line in info.splitlines())
    return {name: value for name, _, value in lines}


async def kind_of(client: Client, key: str) -> str:
    """Return the type of what is at a key, ``none`` if nothing is. Raises :class:`~stormlet.errors.BrokerRefused` if
    that is no stream."""
    kind = text(await client.ask("TYPE", key))
    if kind not in ("stream", "none"):
        raise BrokerRefused(
            f"the key {key!r} holds a {kind}, not a stream: only streams keep an entry until it is acked"
        )
    return kind


async def check_group(client: Client, stream: str, group: str, start: str, *, create: bool) -> None:
    """See that there is a consumer group; make it if there is none. Raises :class:`~stormlet.errors.BrokerRefused` for
    a stream that is not there, unless it is to be created."""
    from redis.exceptions import ResponseError

    if await kind_of(client, stream) == "none" and not create:
        raise BrokerRefused(f"there is no stream {stream!r}: write to it first, or say create=True")
    try:
        await client.ask("XGROUP", "CREATE", stream, group, start, "MKSTREAM")
    except ResponseError as error:
        if not str(error).startswith("BUSYGROUP"):
            raise
