"""Deleting entries that every consumer group of a stream is done with: an ack alone deletes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stormlet.connect.redis.client import Client, pairs
from stormlet.connect.redis.entries import id_numbers

EVERY = 5.0
"""Seconds between two trims."""


async def trim(client: Client, stream: str) -> None:
    """Delete the entries before the first that some group has not acked, but for those that share a block of about a
    hundred with it.

    What a group has not been given lies behind its last delivered id, so that deliveries in between are not touched.
    """
    groups = [pairs(each) for each in await client.call("XINFO", "GROUPS", stream)]
    pending = await client.calls([("XPENDING", stream, each["name"]) for each in groups])
    if groups and not any(isinstance(each, Exception) for each in pending):
        first, second = min(map(_floor, groups, pending))
        await client.call("XTRIM", stream, "MINID", "~", f"{first}-{second}")


def _floor(group: dict[str, Any], pending: Sequence[Any]) -> tuple[int, int]:
    """Return the first id that a group may still need."""
    first, second = id_numbers(group["last-delivered-id"])
    return id_numbers(pending[1]) if pending[0] else (first, second + 1)
