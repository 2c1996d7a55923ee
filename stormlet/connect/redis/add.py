"""A sink that adds entries to a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.driver.options import AtLeastOne, SinkOptions, checked
from stormlet.connect.redis.client import Client, Command, TlsOptions, check_address, connecting
from stormlet.connect.redis.entries import BODY
from stormlet.connect.redis.server import check_server, kind_of
from stormlet.connect.session import DONE, ConnectContext, Item, Written
from stormlet.connect.sink import Sink
from stormlet.connect.warning import warnings
from stormlet.errors import BrokerRefused, ConnectionLost

T = TypeVar("T")

ORIGIN = "origin"
"""The field with the origin of the message, by which a reader knows what has come twice."""
Fields = Mapping[str, str | bytes | int | float]
FINAL = ("WRONGTYPE", "ERR ", "wrong number")
"""Beginnings of errors that a later attempt meets again."""
NOT_NOW = ("NOREPLICAS", "MISCONF", "BUSY", "TRYAGAIN")
"""Beginnings of errors of a server that takes nothing now, as it has no disk, or too few replicas."""


class AddSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of :class:`Add`, beside those of all sinks."""

    body: str
    max_length: AtLeastOne | None
    ca_file: str | None
    insecure: bool


class Add(Sink[T]):
    """Adds an entry for each value to a stream of Redis or Valkey, as JSON in one field.

    An entry has the origin of its message in the field ``origin``: after a lost connection entries may be there twice.
    """

    def __init__(
        self,
        url: str | None,
        stream: str,
        *,
        body: str = BODY,
        fields: Callable[[T], Fields] | None = None,
        max_length: int | None = None,
        ca_file: str | None = None,
        insecure: bool = False,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``body`` is the field of the JSON; ``fields`` makes all fields of a value instead. ``max_length`` deletes the
        oldest entries beyond so many, read or not. ``ca_file`` and ``insecure`` are those of
        :class:`~stormlet.connect.redis.stream.StreamSettings`."""
        super().__init__(url, **options)
        checked(AddSettings(body=body, max_length=max_length, ca_file=ca_file, insecure=insecure))
        self.stream = stream
        self._body = body
        self._fields = fields
        self._max_length = max_length
        self._tls = TlsOptions(insecure=insecure, ca_file=ca_file)

    @property
    def writes(self) -> str:
        """The stream."""
        return self.stream

    def fields_of(self, value: T) -> Fields:
        """Return the fields of an entry."""
        return {self._body: self.encode(value)} if self._fields is None else self._fields(value)

    async def begin(self, address: Address, context: ConnectContext) -> AddSession:
        """Connect."""
        with connecting(address):
            check_address(address)
            client = Client(address, self._tls)
            try:
                await check_server(client, warnings(context))
                await kind_of(client, self.stream)
            except BaseException:
                await client.close()
                raise
        return AddSession(client, self.command)

    def command(self, item: Item) -> Command:
        """Return the command that adds an item."""
        fields = dict(self.fields_of(item.value))
        if item.origin is not None:
            fields.setdefault(ORIGIN, str(item.origin))
        bound = () if self._max_length is None else ("MAXLEN", "~", self._max_length)
        flat = [_encoded(each) for pair in fields.items() for each in pair]
        return ("XADD", self.stream, *bound, "*", *flat)


class AddSession:
    """See :class:`~stormlet.connect.session.SinkSession`."""

    def __init__(self, client: Client, command: Callable[[Item], Command]) -> None:
        self._client = client
        self._command = command

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Add these in one pipeline."""
        commands = [self._try(item) for item in items]
        replies = iter(await self._client.calls([each for each in commands if not isinstance(each, Written)]))
        return [each if isinstance(each, Written) else _written(next(replies)) for each in commands]

    def _try(self, item: Item) -> Command | Written:
        try:
            return self._command(item)
        except Exception as error:  # of the user's function, or a value without JSON
            return Written(f"{type(error).__name__}: {error}", permanent=True)

    async def close(self) -> None:
        """Disconnect."""
        await self._client.close()


def _encoded(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"a field is text, bytes or a number, not {type(value).__name__}")
    return str(value).encode()


def _written(reply: Any) -> Written:
    """Say what became of an item. Raises :class:`~stormlet.errors.ConnectionLost` for a server that is no primary now,
    and :class:`~stormlet.errors.BrokerRefused` if the user may not write there."""
    from redis.exceptions import ClusterDownError, NoPermissionError, OutOfMemoryError, ReadOnlyError
    from redis.exceptions import ConnectionError as NotReady

    if isinstance(reply, NoPermissionError):
        raise BrokerRefused(str(reply))
    if isinstance(reply, ReadOnlyError | ClusterDownError | NotReady):
        raise ConnectionLost(str(reply))
    if not isinstance(reply, Exception):
        return DONE
    reason = str(reply) or type(reply).__name__
    later = isinstance(reply, OutOfMemoryError) or reason.startswith(NOT_NOW)
    return Written(reason, permanent=reason.startswith(FINAL), later=later)
