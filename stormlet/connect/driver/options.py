"""Options that all sources have, and those that all sinks have."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from operator import index
from typing import Annotated, Any, Final, Literal, SupportsIndex, TypeAlias, TypedDict, TypeVar, cast

import msgspec

from stormlet.connect.secrets import Secret
from stormlet.connect.session import Capabilities, Settles
from stormlet.core.settlement.reconnects import ReconnectPolicy
from stormlet.core.shortened import shortened
from stormlet.errors import InvalidTopology
from stormlet.model.logic import not_at_once

S = TypeVar("S", bound=msgspec.Struct)

Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
NotNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
AtLeastOne: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class SourceOptions(TypedDict, total=False):
    """Options of every source, by their names."""

    encoding: Literal["json", "msgpack"]
    password: Secret | None
    ordered_by: Callable[[Any], Hashable] | None
    settle_every: float
    revoke_timeout: float
    closing_timeout: float | None
    max_hold: float
    max_uncommitted: int
    max_buffer_bytes: int
    max_message_bytes: int
    give_up: float
    reconnects: ReconnectPolicy
    lag_every: float


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one source."""

    encoding: str = "json"
    """The encoding of bodies that ``as_=`` decodes: ``"json"`` or ``"msgpack"``."""
    password: Secret | None = None
    """It counts before the one of the URL."""
    ordered_by: Callable[[Any], Hashable] | None = None
    """The key of a value: one message of each key is under way at a time, so that replays keep the order (law R7)."""
    settle_every: NotNegative | None = None
    """Seconds for which the driver gathers what the broker is to be told; None: 0.5 where positions are committed, else
    none, so that what comes while one settlement is under way is the next one."""
    revoke_timeout: NotNegative = 30.0
    """Seconds for which a partition that is given to somebody else waits for its trees (law R2)."""
    closing_timeout: NotNegative | None = None
    """Seconds for which the end waits for the last settlement; None: as long as the drain may take, and a second at
    least; ten where there is no drain, or none with a deadline (law R6)."""
    max_hold: NotNegative = 3600.0
    """Seconds for which a message is held by renewing its lease (law R4)."""
    max_uncommitted: AtLeastOne = 10_000
    """Messages of one partition behind the first that is open; beyond, the partition is paused (law R1)."""
    max_buffer_bytes: AtLeastOne = 64 * 2**20
    """Bytes of messages that have come and are not emitted (law R5)."""
    max_message_bytes: AtLeastOne = 16 * 2**20
    """Bytes of a body; a larger one is a dead letter (law R6)."""
    give_up: NotNegative = 300.0
    """Seconds for which a broker may refuse a connection that it has given before, or what it is for; then the topology
    crashes (law R8)."""
    reconnects: ReconnectPolicy = ReconnectPolicy()
    """The pauses before attempts at a lost connection."""
    lag_every: Positive = 5.0
    """Seconds between two questions for the lag."""

    def gathering(self, capabilities: Capabilities) -> float:
        """Return the seconds for which settlements are gathered."""
        if self.settle_every is not None:
            return self.settle_every
        return 0.5 if capabilities.settles is Settles.PREFIX else 0.0


def split_options(options: Mapping[str, object], kind: type[S]) -> tuple[S, SourceOptions]:
    """Return the settings that only this kind of source has, and the options that all sources have."""
    others = dict(options)
    ours = {name: others.pop(name) for name in kind.__struct_fields__ if name in others}
    return checked(kind(**ours)), cast("SourceOptions", others)


def checked(settings: S) -> S:
    """Return the settings, or raise :class:`~stormlet.errors.InvalidTopology`, which names one that cannot be. It shows
    no value, as that may be a password."""
    try:
        given = {name: _plain(value) for name, value in msgspec.structs.asdict(settings).items()}
        msgspec.convert(given, type(settings))
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`")
        way_out = "; Secret.from_environment and Secret.from_file make one" if name == "password" else ""
        raise InvalidTopology(f"{name}=: {said[:1].lower()}{said[1:]}{way_out}") from None
    return settings


def _plain(value: object) -> object:
    """A number of NumPy's, or of another kind of its own, as Python's; a path as text."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    return index(value) if isinstance(value, SupportsIndex) and not isinstance(value, bool | type) else value


def source_settings(options: SourceOptions) -> SourceSettings:
    """Return the settings; raise :class:`TypeError` for an unknown name, and :class:`~stormlet.errors.InvalidTopology`
    for a value that cannot be."""
    settings = checked(SourceSettings(**cast("dict[str, Any]", options)))
    _check_order(settings.ordered_by)
    return settings


REMAINING: Final = 2 / 3
"""The part of its lease that a message may have left when it is done: leases are renewed after each third."""


def check_lease(settings: SourceSettings, rules: Capabilities) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for options by which leases would always run out (law R4)."""
    lease, gathering = rules.lease, settings.gathering(rules)
    if lease is None:
        return
    if lease > settings.max_hold:
        raise InvalidTopology(
            f"a lease of {lease:g} s is longer than max_hold={settings.max_hold:g}, for which a message is held; raise "
            "max_hold, or lower the lease"
        )
    if gathering > REMAINING * lease:  # which is renewed no more when the message is done
        raise InvalidTopology(
            f"settle_every={gathering:g} is too long for a lease of {lease:g} s, which runs out meanwhile: messages "
            f"that are done come again; lower settle_every to half of the lease"
        )


def check_rules(rules: Capabilities) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for what needs a broker that is told of each message. Where
    positions are committed, nothing would ever be said of a message that is rejected, given back or no longer held."""
    if rules.settles is Settles.EACH:
        return
    named = {
        "has_dead_letters": rules.has_dead_letters,
        "lease": rules.lease is not None,
        "most_held": rules.most_held is not None,
    }
    for name in (name for name, is_given in named.items() if is_given):
        raise InvalidTopology(
            f"capabilities: {name}= needs settles=Settles.EACH, as a position that is committed says nothing of a "
            f"single message; leave it out (the dead letters of the run have what is given up)"
        )


def _check_order(ordered_by: Callable[[Any], Hashable] | None) -> None:
    """Refuse what would give another key for each message."""
    if fault := not_at_once(ordered_by):
        raise InvalidTopology(
            f"ordered_by=: {shortened(ordered_by)} {fault}, and is called with each value for its key at once; write a "
            f"plain function that returns it"
        )


class SinkOptions(TypedDict, total=False):
    """Options of every sink, by their names."""

    password: Secret | None
    size: int
    within: float
    at_once: int
    give_up: float
    reconnects: ReconnectPolicy


class SinkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one sink."""

    password: Secret | None = None
    """It counts before the one of the URL."""
    size: AtLeastOne = 500
    """Values that are written together at most."""
    within: NotNegative = 0.01
    """Seconds for which the first of them waits for others."""
    at_once: AtLeastOne = 1
    """Batches that are written at a time."""
    give_up: NotNegative = 300.0
    """Seconds for which a broker may refuse a connection that it has given before, or what it is for; then the topology
    crashes (law R8)."""
    reconnects: ReconnectPolicy = ReconnectPolicy()
    """The pauses before attempts at a lost connection."""


def sink_settings(options: SinkOptions) -> SinkSettings:
    """Return the settings; raise :class:`TypeError` for an unknown name, and :class:`~stormlet.errors.InvalidTopology`
    for a value that cannot be."""
    return checked(SinkSettings(**cast("dict[str, Any]", options)))
