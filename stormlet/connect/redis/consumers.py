"""The name of a consumer, which only one process has at a time.

Theory of operation
-------------------
A consumer group keeps a list of what each consumer has not acked, by the name of the consumer. A process that starts
again finds its own list only if its name is the same as before. But two processes on one host must not have the same
name: the second would take for its own what the first is at work on.

A server knows who is connected. So each connection bears the name of its consumer and a token of its run, and a
consumer whose name another run bears takes the next one, ``name.2`` and so on. The names are few, so that no lists of
the dead pile up. Both are said and asked in one transaction: of two that come together, one is first.

A connection with this run's own token is one that has been lost, and of which the server does not know that yet. It may
still wait for entries, which nobody would see; so it is killed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import count
from random import Random
from urllib.parse import quote
from uuid import uuid4
from weakref import WeakKeyDictionary

from stormlet.connect.redis.client import Client, text
from stormlet.connect.session import ConnectContext

logger = logging.getLogger("stormlet.connect")

NOBODY = 0
"""The number of a connection that does not know its own."""
CONNECTION = re.compile(r"\bid=(\d+) .*\bname=stormlet/(\S*)/(\S*) ")

_tokens = WeakKeyDictionary[Random, str]()


def token_of(context: ConnectContext) -> str:
    """Return a text that this task of this run has at each of its connections, and nobody else."""
    # A task keeps its randomness from connection to connection, and no two have the same object.
    return _tokens.setdefault(context.random, uuid4().hex)


async def own_name(client: Client, group: str, consumer: str, token: str) -> tuple[str, int]:
    """Return a name that no other run has, beginning with ``consumer``, and the number of the connection of
    ``client``. ``group`` names the group and its stream."""
    from redis.exceptions import NoPermissionError

    try:
        number = int(await client.ask("CLIENT", "ID"))
        await client.ask("CLIENT", "LIST", "ID", number)
    except NoPermissionError:
        logger.warning("%r must be used by one process only: CLIENT ID and LIST are not permitted", consumer)
        return consumer, NOBODY
    for name in _names(consumer):
        label = "/".join(quote(each, safe="") for each in (group, name))
        listed = (await client.calls(_say(label, token), at_once=True))[-1]
        named = [(each, other) for each, whose, other in _connections(text(listed)) if whose == label]
        others = [(each, other) for each, other in named if each != number]
        if all(other == token for _, other in others):
            await client.calls([("CLIENT", "KILL", "ID", each) for each, _ in others])
            return name, number
    raise AssertionError("there are always further names")


def _names(consumer: str) -> Iterator[str]:
    yield consumer
    yield from (f"{consumer}.{number}" for number in count(2))


def _say(label: str, token: str) -> list[tuple[str, ...]]:
    return [("CLIENT", "SETNAME", f"stormlet/{label}/{token}"), ("CLIENT", "LIST", "TYPE", "normal")]


def _connections(listed: str) -> Iterator[tuple[int, str, str]]:
    """The connections with a name of ours: number, label and token."""
    for line in listed.splitlines():
        if found := CONNECTION.search(line):
            yield int(found[1]), found[2], found[3]
