"""Questions to JetStream's API: is there a stream, and a consumer as the source needs it; they are made if not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import msgspec

from stormlet.connect.nats.connection import Connection, status_of
from stormlet.errors import BrokerRefused, ConnectionLost

NANO: Final = 1_000_000_000
NO_STREAM: Final = 10_059
NO_CONSUMER: Final = 10_014
UNSUITABLE: Final = "? \t\r\n.*>/\\"
"""Letters that no name of a stream or consumer has: they would ask for something else."""

Warn = Callable[[str], None]


class ApiError(msgspec.Struct):
    """An answer that says no."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class StreamConfig(msgspec.Struct):
    """The part of a stream's configuration that matters here."""

    name: str = ""
    subjects: list[str] = []
    retention: str = "limits"
    max_bytes: int = -1


class ConsumerConfig(msgspec.Struct):
    """The part of a consumer's configuration that matters here."""

    ack_policy: str = "none"
    ack_wait: int = 0
    max_deliver: int = -1
    max_ack_pending: int = -1
    backoff: list[int] = []
    deliver_subject: str = ""
    filter_subject: str = ""
    filter_subjects: list[str] = []

    @property
    def filters(self) -> list[str]:
        """The subjects that it gives; none for all."""
        return sorted(self.filter_subjects or ([self.filter_subject] if self.filter_subject else []))


class Answer(msgspec.Struct):
    """An answer of the API, as far as it is read."""

    error: ApiError | None = None
    config: dict[str, Any] = {}
    streams: list[str] | None = None
    num_pending: int = 0
    num_ack_pending: int = 0


class Wanted(msgspec.Struct, frozen=True):
    """A consumer as a source needs it."""

    stream: str
    name: str
    subjects: Sequence[str]
    lease: float
    start: Literal["all", "new"]
    credit: int


class JetStream:
    """The API of JetStream, in the domain that the URL has as ``?domain=``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        domain = connection.address.options.get("domain", "")
        self.prefix = f"$JS.{domain}.API" if domain else "$JS.API"

    async def ask(self, what: str, **asked: object) -> Answer:
        """Return an answer, which may have an error."""
        body = msgspec.json.encode(asked) if asked else b""
        subject = f"{self.prefix}.{what}"
        message = await self._connection.ask(subject, body)
        if status_of(message):
            raise BrokerRefused(
                f"{self._connection.address}: nobody answers {subject}: JetStream is not enabled there, or not ready: "
                "start the server with -js, or say ?domain= of the servers that have it"
            )
        return msgspec.json.decode(message.data, type=Answer)

    async def stream_of(self, subject: str) -> str | None:
        """Return the name of the stream that keeps a subject."""
        return next(iter(self._read(await self.ask("STREAM.NAMES", subject=subject)).streams or ()), None)

    async def check_stream(self, name: str, create: Sequence[str]) -> StreamConfig:
        """Return a stream's configuration. If there is none, it is made with the subjects ``create``, or refused."""
        _check_name("stream", name)
        answer = await self.ask(f"STREAM.INFO.{name}")
        if _is_error(answer, NO_STREAM):
            if not create:
                raise BrokerRefused(
                    f"{self._connection.address}: there is no stream {name!r}: make it first, or say create=[its "
                    "subjects]"
                )
            answer = await self.ask(f"STREAM.CREATE.{name}", name=name, subjects=list(create))
        return msgspec.convert(self._read(answer).config, StreamConfig)

    async def check_consumer(self, wanted: Wanted, warn: Warn) -> None:
        """Make a durable pull consumer, or see that the one that is there can be used."""
        _check_name("consumer", wanted.name)
        answer = await self.ask(f"CONSUMER.INFO.{wanted.stream}.{wanted.name}")
        if _is_error(answer, NO_CONSUMER):
            answer = await self.ask(
                f"CONSUMER.DURABLE.CREATE.{wanted.stream}.{wanted.name}",
                stream_name=wanted.stream,
                config=_config(wanted),
            )
        found = msgspec.convert(self._read(answer).config, ConsumerConfig)
        if unfit := _unfit(found, wanted):
            raise BrokerRefused(f"{self._connection.address}: the consumer {wanted.name!r} {unfit}")
        for words in _doubts(found, wanted):
            warn(f"the consumer {wanted.name!r} {words}")

    async def undone(self, stream: str, consumer: str) -> int:
        """Return the number of messages that a consumer has not given, or that are not acked."""
        answer = self._read(await self.ask(f"CONSUMER.INFO.{stream}.{consumer}"))
        return answer.num_pending + answer.num_ack_pending

    def _read(self, answer: Answer) -> Answer:
        error = answer.error
        if error is None:
            return answer
        words = f"{self._connection.address}: {error.description}"
        raise (ConnectionLost if error.code >= 500 else BrokerRefused)(words)


def _is_error(answer: Answer, number: int) -> bool:
    return answer.error is not None and answer.error.err_code == number


def _check_name(what: str, name: str) -> None:
    if not name or any(letter in UNSUITABLE for letter in name):
        raise BrokerRefused(f"{name!r} cannot be the name of a {what}")


def _config(wanted: Wanted) -> dict[str, object]:
    subjects = list(wanted.subjects)
    config: dict[str, object] = {
        "durable_name": wanted.name,
        "ack_policy": "explicit",
        "ack_wait": int(wanted.lease * NANO),
        "deliver_policy": wanted.start,
        "max_deliver": -1,
        "max_ack_pending": -1,
        "replay_policy": "instant",
    }
    if len(subjects) == 1:
        return config | {"filter_subject": subjects[0]}
    return config | ({"filter_subjects": subjects} if subjects else {})


def _unfit(found: ConsumerConfig, wanted: Wanted) -> str:
    """Say why a consumer cannot be used; empty if it can."""
    lease = min([found.ack_wait, *found.backoff]) / NANO
    if found.deliver_subject:
        return "pushes: a source pulls, as any number of tasks may share a consumer then"
    if found.ack_policy != "explicit":
        return f"has the ack policy {found.ack_policy!r}: each message must be acked by itself (explicit)"
    if lease < wanted.lease:
        return f"gives a message away after {lease:g} s (ack_wait, backoff), before lease={wanted.lease:g} is over"
    if found.filters != sorted(wanted.subjects):
        return f"gives the subjects {found.filters or 'of the stream'}, not {list(wanted.subjects) or 'all'}"
    return ""


def _doubts(found: ConsumerConfig, wanted: Wanted) -> list[str]:
    doubts: list[str] = []
    if found.max_deliver > 0:
        doubts.append(
            f"delivers a message {found.max_deliver} times at most (max_deliver), and then forgets it: messages whose "
            "process was killed so often are lost"
        )
    if 0 < found.max_ack_pending < wanted.credit:
        doubts.append(f"has max_ack_pending {found.max_ack_pending}, which is less than max_spout_pending")
    return doubts
