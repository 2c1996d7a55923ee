"""Settings of Kafka's client, from addresses and options, and its errors in words.

A broker that cannot be reached is the client's own business for a while: it goes on as the same member of its group,
and its idempotent producer writes nothing twice, while a new client would do both worse. Only when no broker has been
there for :data:`LOST_AFTER` seconds, in which the group has given its partitions to others anyway, is the connection
lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar, cast

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.driver.options import AtLeastOne, Positive
from stormlet.connect.secrets import Secret, scrubbed
from stormlet.errors import BrokerRefused, ConnectionLost, ConnectorError, InvalidTopology

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import KafkaError
    from confluent_kafka.cimpl import NewTopic

T = TypeVar("T")

LOST_AFTER: Final = 45.0
"""Seconds without any broker after which a connection is lost: the session timeout of groups."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds for which ``connect`` tries to reach a broker."""
PROPAGATES: Final = 0.5
"""Seconds after which all brokers know a topic that was made."""
PORT: Final = 9092

logger = logging.getLogger("stormlet.connect.kafka")

REFUSALS: Final = frozenset(
    (
        "_AUTHENTICATION",
        "_SSL",
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_GROUP_ID",
        "INVALID_SESSION_TIMEOUT",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
        "UNKNOWN_TOPIC_OR_PART",
        "UNSUPPORTED_ASSIGNOR",
        "UNSUPPORTED_SASL_MECHANISM",
        "UNSUPPORTED_VERSION",
        "_UNKNOWN_TOPIC",
    )
)
"""Errors that will not go away by themselves."""


class ClientLog:
    """A logger for the client, whose lines go to ours: each kind of line at its level once in :data:`LOST_AFTER`
    seconds, and otherwise for who debugs, as it logs each attempt at a connection."""

    def __init__(self) -> None:
        self._logged: dict[str, float] = {}

    def log(self, level: int, message: str, kind: str, *details: str) -> None:
        """Log a line of this kind. The client calls it."""
        now = monotonic()
        if now - self._logged.get(kind, -LOST_AFTER) < LOST_AFTER:
            level = logging.DEBUG
        else:
            self._logged[kind] = now
        logger.log(level, message, kind, *details)


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """TLS and SASL. Certificates are verified, with the names in them."""

    tls: bool = False
    """Encrypt. A URL with the scheme ``kafkas`` does so, too."""
    ca: str | None = None
    """File with the certificates of authorities to trust; None: those of the system."""
    certificate: str | None = None
    """File with the certificate of this client, and ``key`` with its key, both in PEM."""
    key: str | None = None
    sasl: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"] | None = None
    """The mechanism; None: ``SCRAM-SHA-512`` if the URL has a user, else no authentication."""
    insecure: bool = False
    """Let a password go in the clear (``PLAIN`` without TLS), and do not verify certificates."""


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that sources and sinks have in common, as far as they have bounds."""

    create: AtLeastOne | None
    lost_after: Positive


class GroupOptions(ClientOptions, frozen=True, kw_only=True):
    """Options of sources, as far as they have bounds."""

    start: Literal["earliest", "latest"]
    protocol: Literal["classic", "consumer"]


def client_settings(
    address: Address, security: Security, options: Mapping[str, Any], context: str
) -> dict[str, Any]:
    """Return the settings that consumers and producers have in common. ``options`` count before all of them.

    Raises :class:`~stormlet.errors.InvalidTopology` for a password that would go in the clear, and
    :class:`~stormlet.errors.BrokerRefused` for a URL of something else, or with parts that mean nothing here.
    """
    address.check_scheme("kafka", "kafkas")
    address.check_rest(several=True, instead="settings of librdkafka go to client=")
    servers = ",".join(
        f"[{host}]:{port or PORT}" if ":" in host else f"{host}:{port or PORT}"
        for host, port in address.hosts
    )
    return {
        "bootstrap.servers": servers,
        "client.id": context,
        "socket.timeout.ms": 10_000,
        "socket.keepalive.enable": True,
        "reconnect.backoff.ms": 100,
        "reconnect.backoff.max.ms": 2_000,
        "logger": ClientLog(),
        **_secured(address, security),
        **{name: each.reveal() if isinstance(each, Secret) else each for name, each in options.items()},
    }


def _secured(address: Address, security: Security) -> dict[str, Any]:
    tls = security.tls or address.scheme == "kafkas"
    mechanism = security.sasl or (None if address.user is None else "SCRAM-SHA-512")
    if mechanism == "PLAIN" and not (tls or security.insecure):
        raise InvalidTopology(
            f"{address}: sasl='PLAIN' sends the password in the clear; use tls=True, or insecure=True in tests"
        )
    settings: dict[str, Any] = {
        "security.protocol": f"{'SASL_' if mechanism else ''}{'SSL' if tls else 'PLAINTEXT'}"
    }
    if mechanism:
        settings["sasl.mechanism"] = mechanism
    if address.user is not None:
        settings["sasl.username"] = address.user
    if address.password is not None:
        settings["sasl.password"] = address.password.reveal()
    files = {
        "ssl.ca.location": security.ca,
        "ssl.certificate.location": security.certificate,
        "ssl.key.location": security.key,
    }
    settings |= {name: file for name, file in files.items() if file is not None}
    if tls and security.insecure:
        settings["enable.ssl.certificate.verification"] = False
    return settings


def secrets_of(address: Address, options: Mapping[str, Any]) -> tuple[Secret, ...]:
    """Return what must not show of a connection."""
    return (*address.secrets, *(each for each in options.values() if isinstance(each, Secret)))


def missing_client() -> BrokerRefused:
    """Return the error for a client that is not installed."""
    return BrokerRefused("Kafka needs the package confluent-kafka: pip install 'stormlet[kafka]'")


class Failures:
    """The errors that a client reports by the way, and for how long no broker was there."""

    def __init__(self, address: Address, secrets: Iterable[Secret], lost_after: float = LOST_AFTER) -> None:
        self.where = str(address)
        """The address, without secrets."""
        self._secrets = tuple(secrets)
        self._lost_after = lost_after
        self._down: float | None = None
        self.refused: ConnectorError | None = None
        """What some broker has refused for good; None if nothing."""
        self.last = ""
        """The last error in words."""

    def note(self, error: KafkaError) -> None:
        """The client reports an error: its ``error_cb``, from whatever thread polls."""
        name = error.name()
        if name == "_ALL_BROKERS_DOWN":
            if self._down is None:
                self._down = monotonic()
            return
        self.last = self.words(error)
        if name in REFUSALS or error.fatal():
            self.refused = self.error(error)

    def words(self, error: KafkaError) -> str:
        """Return an error in words, without secrets."""
        return scrubbed(f"{self.where}: {error.str()} ({error.name()})", self._secrets)

    def error(self, error: KafkaError) -> ConnectorError:
        """Return an error as one of ours."""
        kind = BrokerRefused if error.name() in REFUSALS else ConnectionLost
        return kind(self.words(error))

    @property
    def is_down(self) -> bool:
        """True while no broker is known to be there."""
        return self._down is not None

    def is_up(self) -> None:
        """A broker has answered."""
        self._down = None

    def check(self) -> None:
        """Raise :class:`~stormlet.errors.BrokerRefused` and :class:`~stormlet.errors.ConnectionLost` for a connection
        that must be made again."""
        if self.refused is not None:
            raise type(self.refused)(str(self.refused))
        if self._down is not None and monotonic() - self._down > self._lost_after:
            raise ConnectionLost(f"{self.where}: no broker can be reached; {self.last}")


def made(make: Callable[[dict[str, Any]], T], settings: dict[str, Any], failures: Failures) -> T:
    """Make a consumer or a producer. Raises :class:`~stormlet.errors.BrokerRefused` for a setting that cannot be, which
    is one of the user's."""
    from confluent_kafka import KafkaException

    try:
        return make(settings)
    except KafkaException as exception:
        raise BrokerRefused(failures.words(exception.args[0])) from None
    except (TypeError, ValueError) as error:
        raise BrokerRefused(f"{failures.where}: client=: {error}") from None


class Client(Protocol):
    """The common part of consumers and producers."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Ask the cluster for its topics."""
        ...

    def poll(self, timeout: float = -1) -> object:
        """Have callbacks called."""
        ...


class Admin(Protocol):
    """A client that makes topics."""

    def create_topics(self, new_topics: list[NewTopic]) -> Mapping[str, Future[None]]:
        """Return, by topic, what is over when it has been made."""
        ...


Create = Callable[[list[str]], None]
"""Makes topics that are not there."""


def creating(settings: Mapping[str, Any], partitions: int | None) -> Create | None:
    """Return a function that makes topics with so many partitions; None for None."""
    if partitions is None:
        return None

    def create(topics: list[str]) -> None:
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = cast("Admin", AdminClient(dict(settings)))
        for made in admin.create_topics([NewTopic(topic, partitions) for topic in topics]).values():
            error = made.exception(CONNECT_TIMEOUT)
            if error is not None and "TOPIC_ALREADY_EXISTS" not in str(error):  # another task was first
                raise error

    return create


def greet(client: Client, failures: Failures, topics: Sequence[str], create: Create | None) -> None:
    """Reach a broker, and find the topics there, or make them; to be called from a thread that may wait.

    Raises :class:`~stormlet.errors.BrokerRefused`, or :class:`~stormlet.errors.ConnectionLost` after
    :data:`CONNECT_TIMEOUT` seconds.
    """
    deadline = monotonic() + CONNECT_TIMEOUT
    missing = _missing(topics, _known(client, failures, deadline))
    if missing and create is not None:
        _create(missing, create, failures)
    elif missing:
        sleep(PROPAGATES)  # one that was just made is not known to all brokers at once
        missing = _missing(topics, _known(client, failures, deadline))
        if missing:
            raise BrokerRefused(
                f"{failures.where} has no topic {', '.join(map(repr, missing))}, or this user may not see it; "
                "create=4 makes it with 4 partitions"
            )


def partitions_of(client: Client, failures: Failures, topics: Sequence[str]) -> list[tuple[str, int]]:
    """Return all partitions of these topics, some of which may have just been made.

    Raises :class:`~stormlet.errors.ConnectionLost` after :data:`CONNECT_TIMEOUT` seconds.
    """
    deadline = monotonic() + CONNECT_TIMEOUT
    while missing := _missing(topics, known := _known(client, failures, deadline)):
        if monotonic() > deadline:
            raise ConnectionLost(f"{failures.where} does not know {', '.join(map(repr, missing))} yet")
        sleep(PROPAGATES)
    return [(topic, number) for topic in topics for number in sorted(known[topic].partitions)]


def _known(client: Client, failures: Failures, deadline: float) -> Mapping[str, Any]:
    from confluent_kafka import KafkaException

    while True:
        try:
            known: Mapping[str, Any] = client.list_topics(timeout=1.0).topics
        except KafkaException as exception:
            error: KafkaError = exception.args[0]
        else:
            failures.is_up()
            return known
        client.poll(0)  # has error_cb called
        if failures.refused is not None:
            raise failures.refused
        if monotonic() > deadline:
            raise ConnectionLost(failures.last or failures.words(error))


def _missing(topics: Iterable[str], known: Mapping[str, Any]) -> list[str]:
    return [topic for topic in topics if topic not in known or known[topic].error is not None]


def _create(topics: list[str], create: Create, failures: Failures) -> None:
    from confluent_kafka import KafkaException

    try:
        create(topics)
    except KafkaException as exception:
        raise failures.error(exception.args[0]) from None
