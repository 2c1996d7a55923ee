"""A sink that publishes to streams of JetStream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, Unpack

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.driver.options import SinkOptions, checked
from stormlet.connect.nats.connection import Connection, Tls, status_of
from stormlet.connect.nats.jetstream import ApiError, JetStream
from stormlet.connect.nats.stream import connected
from stormlet.connect.session import DONE, ConnectContext, Item, Written
from stormlet.connect.sink import Sink
from stormlet.errors import BrokerRefused, ConnectionLost, ConnectorError, InvalidTopology

if TYPE_CHECKING:
    from nats.aio.msg import Msg

T = TypeVar("T")

ORIGIN: Final = "stormlet-origin"
"""The header with the origin of the message that an output comes of: the same in every attempt at it."""
MESSAGE_ID: Final = "Nats-Msg-Id"
KEPT_WITHIN: Final = 30.0
"""Seconds within which the server says that it has a message."""
NEVER: Final = frozenset({10_054, 10_060, 10_097, 10_111})
"""Errors that a later attempt meets again: a message or its headers are too large, another stream was expected, or it
may not replace others."""
NO_ROOM: Final = frozenset({10_002, 10_008, 10_023, 10_028, 10_047, 10_118})
"""Errors of an account, a server or a cluster that has no room for any message now, or has no leader."""
NOT_STORED: Final = 10_077
"""The error of a stream that does not take a message, for a reason that it has in words alone."""
FULL: Final = "maximum messages exceeded"
"""The words of a stream that has room when some of its messages are gone. They are others where it keeps one message of
each subject, which is how some streams refuse doubles."""
FULL_OF_BYTES: Final = "maximum bytes exceeded"
Message = tuple[str, bytes, dict[str, str]]


class PubAck(msgspec.Struct):
    """The server's answer to a message."""

    stream: str = ""
    error: ApiError | None = None


class PublishSettings(Tls, frozen=True, kw_only=True):
    """Options of :class:`Publish`, beside those of all sinks."""

    create: str | None


class Publish(Sink[T]):
    """A subject that a stream of NATS JetStream keeps, as a sink: an input is acked when the stream has its message.

    ``subject`` may be a function of the value. Bytes and text are published as they are, other values as JSON. The
    header ``stormlet-origin`` has the origin of the message, the same in each attempt. An input whose subject no stream
    keeps is rejected: its message is a dead letter (law S6).

    ``message_id`` is a function of the value. Of messages with the same id a stream keeps the first, and forgets the id
    after its ``duplicate_window``, two minutes by default. ``message_id="origin"`` says that each message of the source
    leads to one value here at most: of two, the second would not be kept.
    """

    def __init__(
        self,
        url: str | None,
        subject: str | Callable[[T], str],
        *,
        message_id: Callable[[T], str] | Literal["origin"] | None = None,
        headers: Callable[[T], Mapping[str, str]] | None = None,
        create: str | None = None,
        ca_file: str | None = None,
        insecure: bool = False,
        certificate: str | None = None,
        key: str | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``create`` is the name of a stream that is made if none keeps the subject, instead of refusing to start.
        ``ca_file``, ``insecure``, ``certificate`` and ``key`` are those of
        :class:`~stormlet.connect.nats.stream.StreamSettings`, ``options`` those of
        :class:`~stormlet.connect.driver.options.SinkSettings`.

        Raises :class:`~stormlet.errors.InvalidTopology` for a subject that nothing can be published to.
        """
        super().__init__(url, **options)
        self._tls = checked(
            PublishSettings(
                create=create, ca_file=ca_file, insecure=insecure, certificate=certificate, key=key
            )
        )
        if not (message_id is None or message_id == "origin" or callable(message_id)):
            raise InvalidTopology(
                f"message_id={message_id!r} is neither a function of the value nor 'origin'"
            )
        if isinstance(subject, str) and not _is_subject(subject):
            raise InvalidTopology(f"nats.Publish: nothing can be published to the subject {subject!r}")
        self.subject = subject
        self._message_id: Callable[[T], str] | Literal["origin"] | None = message_id
        self._headers = headers
        self._create = create

    @property
    def writes(self) -> str:
        """The subject; empty if it depends on the value."""
        return self.subject if isinstance(self.subject, str) else ""

    async def begin(self, address: Address, context: ConnectContext) -> PublishSession:
        """Connect, and see that a stream keeps the subject."""
        connection = await connected(address, context, self._tls)
        try:
            await self._check(JetStream(connection), address)
        except BaseException:
            await connection.close()
            raise
        return PublishSession(connection, self.message)

    async def _check(self, api: JetStream, address: Address) -> None:
        if not self.writes or await api.stream_of(self.writes) is not None:
            return
        if self._create is None:
            raise BrokerRefused(
                f"{address}: no stream keeps the subject {self.writes!r}: make one first, or say create=its name"
            )
        await api.check_stream(self._create, [self.writes])

    def message(self, item: Item) -> Message:
        """Return subject, body and headers of a message."""
        value: T = item.value
        subject = self.subject if isinstance(self.subject, str) else self.subject(value)
        if not _is_subject(subject):
            raise ValueError(f"nothing can be published to the subject {subject!r}")
        headers = {} if self._headers is None else dict(self._headers(value))
        if item.origin is not None:
            headers[ORIGIN] = str(item.origin)
        if (id := self._id(item)) is not None:
            headers[MESSAGE_ID] = id
        return subject, self.encode(value), headers

    def _id(self, item: Item) -> str | None:
        if callable(self._message_id):
            return self._message_id(item.value)
        return None if self._message_id is None or item.origin is None else str(item.origin)


class Posted(NamedTuple):
    """A message that was sent to the server."""

    subject: str
    size: int
    answer: asyncio.Future[Msg]


class PublishSession:
    """See :class:`~stormlet.connect.session.SinkSession`."""

    def __init__(self, connection: Connection, message: Callable[[Item], Message]) -> None:
        self._connection = connection
        self._api = JetStream(connection)
        self._message = message

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Publish these in their order, and wait until the server has said what became of each."""
        posted = [await self._post(item) for item in items]
        answers = [each.answer for each in posted if isinstance(each, Posted)]
        if answers:
            _, late = await asyncio.wait(answers, timeout=KEPT_WITHIN)
            if late:
                raise ConnectionLost(f"{self._connection.address}: no answer within {KEPT_WITHIN:g} s")
        return [each if isinstance(each, Written) else await self._written(each) for each in posted]

    async def _post(self, item: Item) -> Posted | Written:
        from nats.errors import BadHeaderError, BadSubjectError, MaxPayloadError

        try:
            subject, body, headers = self._message(item)
        except Exception as error:  # of the user's function, or a value without JSON
            return _never(error)
        try:
            return Posted(subject, len(body), await self._connection.post(subject, body, headers or None))
        except (BadHeaderError, BadSubjectError, MaxPayloadError, AttributeError, UnicodeError) as error:
            return _never(error)

    async def _written(self, posted: Posted) -> Written:
        answer = posted.answer.result()
        if status_of(answer):
            return await self._nobody(posted.subject)
        error = msgspec.json.decode(answer.data, type=PubAck).error
        if error is None:
            return DONE
        later = error.err_code in NO_ROOM
        if error.err_code == NOT_STORED:
            words = error.description
            later = words == FULL or (words == FULL_OF_BYTES and await self._fits(posted))
        return Written(error.description, permanent=error.err_code in NEVER, later=later)

    async def _fits(self, posted: Posted) -> bool:
        """Return False for a message that is larger than its stream."""
        try:
            stream = await self._api.stream_of(posted.subject)
            most = (await self._api.check_stream(stream or "", ())).max_bytes
        except ConnectorError:  # as a user who publishes may have no right to ask
            return True
        return most < 0 or posted.size < most

    async def _nobody(self, subject: str) -> Written:
        # Nobody answers also while the server of a stream is away.
        if (stream := await self._api.stream_of(subject)) is None:
            return Written(f"no stream keeps the subject {subject!r}", permanent=True)
        return Written(f"the stream {stream!r} does not answer now", later=True)

    async def close(self) -> None:
        """Disconnect."""
        await self._connection.close()


def _is_subject(subject: Any) -> bool:
    words = subject.split(".") if isinstance(subject, str) else [""]
    return all(word and word not in ("*", ">") and not any(map(str.isspace, word)) for word in words)


def _never(error: Exception) -> Written:
    return Written(f"it cannot be published: {type(error).__name__}: {error}", permanent=True)
