"""The rules of real brokers, as far as twins keep them."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

import msgspec

from stormlet.connect.session import Capabilities, Settles


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one kind of broker."""

    name: str
    schemes: tuple[str, ...]
    """Schemes of URLs that stand for it."""
    capabilities: Capabilities
    has_names: bool = True
    """True if a message has the same name whenever it is delivered."""
    delivery_limit: int | None = None
    """Deliveries after which the broker itself drops a message, or has it in its dead letters."""
    losses_count: bool = True
    """True if a delivery whose connection was lost counts."""
    double_ack_closes: bool = False
    """True if an ack of an unknown receipt closes the connection."""
    begins_with_own: bool = False
    """True if a connection begins with what its consumer was given before and has not acked."""
    heartbeat: float = 10.0
    """Seconds of silence after which a client counts its connection as lost."""
    partitions: int = 4
    """Partitions of a log."""


def _each(**more: object) -> Capabilities:
    return msgspec.structs.replace(Capabilities(has_lag=True), **more)


PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile(
            name="rabbitmq-3.10",
            schemes=("amqp3", "amqps3"),
            capabilities=_each(has_dead_letters=True, most_held=1800.0),
            has_names=False,
            double_ack_closes=True,
        ),
        Profile(
            name="rabbitmq-4.0",
            schemes=("amqp", "amqps"),
            capabilities=_each(has_dead_letters=True, most_held=1800.0),
            has_names=False,
            double_ack_closes=True,
            delivery_limit=21,  # x-delivery-limit is 20 by default, and counts redeliveries
        ),
        Profile(name="kestrel", schemes=("kestrel",), capabilities=_each(can_return=True), has_names=False),
        Profile(
            name="redis-7",
            schemes=("redis", "rediss", "valkey", "valkeys"),
            capabilities=_each(lease=60.0, receipts_survive=True, can_return=True),
            begins_with_own=True,
        ),
        Profile(
            name="jetstream",
            schemes=("nats", "tls"),
            capabilities=_each(lease=30.0, receipts_survive=True, can_return=True, has_dead_letters=True),
        ),
        Profile(
            name="sqs",
            schemes=("sqs",),
            capabilities=_each(lease=30.0, receipts_survive=True, can_return=True),
        ),
        Profile(
            name="postgres",
            schemes=("postgres", "postgresql"),
            capabilities=_each(lease=60.0, receipts_survive=True, can_return=True, has_dead_letters=True),
        ),
        Profile(
            name="kafka",
            schemes=("kafka", "kafkas"),
            capabilities=_each(settles=Settles.PREFIX),
        ),
    )
}
"""By name."""

GROUP: Final = "stormlet.connectors"
"""Entry points of packages with connectors of their own."""


def profile_of(scheme: str) -> Profile:
    """Return the rules of the brokers at URLs of this scheme: one of :data:`PROFILES`, or that to which an installed
    package has the entry point of this name in the group ``stormlet.connectors``. Raises :class:`KeyError`, which
    lists the schemes, and :class:`TypeError` for an entry point to something else."""
    known = {each: profile for profile in PROFILES.values() for each in profile.schemes}
    if scheme in known:
        return known[scheme]
    others = entry_points(group=GROUP)
    for each in others.select(name=scheme):
        profile: object = each.load()
        if not isinstance(profile, Profile):
            raise TypeError(
                f"the entry point {scheme!r} of {GROUP} leads to {each.value}, which is no Profile"
            )
        return profile
    schemes = ", ".join(sorted({*known, *others.names}))
    raise KeyError(
        f"no profile has the scheme {scheme!r}; there are {schemes}, and profile= takes another one"
    )
