"""The options of topologies and components: types, ranges, and the places where each may be set.

Theory of operation
-------------------
:class:`Configuration` is the only table of options: its annotations hold type, range and unit, and both the
checks and the words of the error messages are read from them. Options reach it in two steps:

1. :func:`read_options` takes the options as a user wrote them, under our names or Storm's of
   :mod:`stormlet.model.storm_names`. It checks names, types and ranges, and returns the values under our names,
   together with the Storm names that were ignored and the reasons.
2. :func:`configure` lays such values over a base: defaults, then the topology's, then a component's.

This module logs nothing: the caller decides what becomes of :attr:`Options.ignored`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, inspect

from stormlet.errors import InvalidConfiguration
from stormlet.model import storm_names

Setting: TypeAlias = int | float | str | None
"""The value of an option."""

ComponentKind: TypeAlias = Literal["spout", "bolt"]

_Positive = Annotated[float, Meta(gt=0)]
_NotNegative = Annotated[float, Meta(ge=0)]
_Share = Annotated[float, Meta(ge=0, le=1)]
_FromZero = Annotated[int, Meta(ge=0)]
_FromOne = Annotated[int, Meta(ge=1)]
_FromTwo = Annotated[int, Meta(ge=2, le=10_000)]


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a topology, or of one component of it. Times are seconds. Build it with :func:`configure`, which
    checks; the constructor does not."""

    message_timeout: _Positive | None = 30.0
    """Seconds from its emit until a tree that is still open fails with TIMEOUT; None: never. Default 30 (law
    L12)."""

    timeout_buckets: _FromTwo = 3
    """Buckets n of the rotating maps: a timeout is late by at most ``message_timeout / (n - 1)``. Default 3
    (law L12)."""

    timeout_restarts_on: Literal["init", "activity"] = "init"
    """The event that gives a tree its full time: its emit only, or every update of its ledger entry. Default "init"
    (law L12)."""

    ackers: _FromZero = 1
    """Acker tasks that the trees are spread over; 0: nothing is tracked. Default 1 (laws L6, L9)."""

    acker_high_water: _FromOne | None = None
    """Half of the trees that one acker may have open, beyond which emissions fail with OVERFLOW; None, the default: the
    sum of all spouts' ``max_spout_pending`` over ``ackers``, at least 1000 (law L13)."""

    max_spout_pending: _FromOne | None = 1000
    """Messages that one spout task may have pending; None: unlimited. Unless it is set, a bolt below that
    collects large batches raises it, and a source of large messages lowers it. Default 1000 (law S3)."""

    queue_capacity: _FromOne = 1024
    """Tuples in a task's inbox above which its producers wait for room. Default 1024 (law B6)."""

    slice: _Positive = 0.002
    """Seconds that all tasks together may take of one loop iteration. Default 0.002 (law F2)."""

    idle_max: _Positive = 0.1
    """Longest pause in seconds between two polls of an idle synchronous spout. Default 0.1 (law S4)."""

    max_attempts: _FromOne = 5
    """Attempts that a message of a reliable source gets before it becomes a dead letter. Default 5 (law
    S6)."""

    replay_delay: _NotNegative = 0.1
    """Seconds before the first replay; doubled for each further one. Default 0.1 (law S6)."""

    replay_delay_max: _NotNegative = 30.0
    """Seconds above which the delay before a replay does not grow. Default 30 (law S6)."""

    max_restarts: _FromZero = 3
    """Restarts of one task within ``restart_window``; a task that dies once more crashes the topology. Default 3 (law
    C5)."""

    restart_window: _Positive = 60.0
    """Seconds within which the restarts of a task are counted. Default 60 (law C5)."""

    restart_delay: _NotNegative = 0.1
    """Seconds from the death of a task to its first restart; doubled for each further one. Default 0.1 (law
    C5)."""

    restart_delay_max: _NotNegative = 10.0
    """Seconds above which the delay before a restart does not grow. Default 10 (law C5)."""

    drain_timeout: _NotNegative | None = 30.0
    """Seconds that a drain may take before all leftovers fail with SHUTDOWN; None: no deadline. Default 30
    (law C3)."""

    epoch_messages: _FromOne = 10_000
    """Messages after which an epoch is committed, where there is state. Default 10,000 (law X1)."""

    epoch_seconds: _Positive = 1.0
    """Seconds after its first message when an epoch is committed at the latest, where there is state; up to ten times
    as many where slow calls hold up its end. Default 1 (law X1)."""

    history: _NotNegative = 0.0
    """Seconds for which each epoch of a state file can be read and returned to; 0: for as long as the file has it
    anyhow. Default 0 (law K8)."""

    record_edges: _Share = 0.0
    """Share of the trees whose edges are recorded from their beginning, so that ``running.explain`` shows how long each
    tuple has been at its place, and its path to there; 0: none, at no cost. Default 0 (law L14)."""

    explain_stuck: _Positive | None = None
    """Seconds, all attempts together, after which a message whose tree is open is explained in the log, once; None,
    the default: never. Messages of a ``Spout`` class count anew with each attempt (law L14)."""

    tick: _Positive | None = None
    """Seconds between two ticks of each bolt task; None, the default: no ticks (law B5)."""


class Options(msgspec.Struct, frozen=True):
    """Options as a user gave them, checked and under our names."""

    values: dict[str, Setting]
    """Option of :class:`Configuration` -> value; only those that were given."""

    ignored: dict[str, str]
    """Storm's name as given -> the reason why it has no effect here, for a warning by the caller."""


OPTIONS: Final = Configuration.__struct_fields__
"""The names of all options."""

_RESTARTS: Final = ("max_restarts", "restart_window", "restart_delay", "restart_delay_max")

COMPONENT_OPTIONS: Final[dict[ComponentKind, tuple[str, ...]]] = {
    "spout": (
        "max_spout_pending",
        "max_attempts",
        "replay_delay",
        "replay_delay_max",
        "idle_max",
        *_RESTARTS,
    ),
    "bolt": ("queue_capacity", "tick", *_RESTARTS),
}
"""Options that one component may override; every other one belongs to the topology."""


def configure(base: Configuration, options: Mapping[str, object], where: str) -> Configuration:
    """Return ``base`` with ``options`` laid over it; ``where`` opens every error message ("topology 'word-count'").

    Ignored Storm names are dropped: call :func:`read_options` first to warn of them.
    Raises :class:`InvalidConfiguration` for an unknown name, a wrong type, a value out of range, and for a
    ``replay_delay`` or ``restart_delay`` that ends up above its maximum.
    """
    changed = msgspec.structs.replace(base, **read_options(options, where).values)
    for what in ("replay_delay", "restart_delay"):
        first, longest = getattr(changed, what), getattr(changed, f"{what}_max")
        if first > longest:
            delays = f"{what}={first} is above {what}_max={longest}"
            raise InvalidConfiguration(f"{where}: {delays}; raise the one or lower the other")
    return changed


def read_options(options: Mapping[str, object], where: str, *, none: str = "None") -> Options:
    """Check ``options``, ours or Storm's, and return them under our names. ``none`` is the word for None in messages.

    Raises :class:`InvalidConfiguration` for an unknown or refused name, an option that is given twice (once
    under Storm's name), a wrong type and a value out of range. ``topology.enable.message.timeouts: false``
    wins over any timeout given along with it, as in Storm.
    """
    return _Reader(where, OPTIONS, (), none).read_all(options)


def component_options(
    kind: ComponentKind, options: Mapping[str, object], where: str, *, keywords: Collection[str] = ()
) -> Options:
    """Check the options that one spout or bolt overrides, ours or Storm's; :func:`configure` then lays the
    values over the topology's. ``keywords`` are further names that the caller takes, to be suggested for
    misspelt ones.

    Raises :class:`InvalidConfiguration` as :func:`read_options` does, and for an option that belongs to the
    topology or to the other kind of component.
    """
    return _Reader(where, COMPONENT_OPTIONS[kind], keywords).read_all(options)


_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None, "none": None}


def parse_setting(text: str) -> tuple[str, object]:
    """Split ``key=value`` as the command line takes it. The value is a JSON number or string, true, false,
    null or none (in any case); anything else is taken as text. Raises :class:`InvalidConfiguration` without
    key or ``=``."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals:
        raise InvalidConfiguration(
            f"{text!r} is not a setting: write key=value, for example message_timeout=10"
        )
    return key, _scalar(value)


def spell_setting(key: str, value: Setting) -> str:
    """Return the ``key=value`` that :func:`parse_setting` reads as this setting."""
    is_plain = isinstance(value, str) and _scalar(value) == value
    return f"{key}={value if is_plain else msgspec.json.encode(value).decode()}"


def _scalar(text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return msgspec.json.decode(text, type=int | float | str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


class _Reader:
    """Reads options one by one, and remembers the name under which each was given."""

    def __init__(
        self, where: str, allowed: Collection[str], keywords: Collection[str], none: str = "None"
    ) -> None:
        self._where = where
        self._allowed = allowed
        self._keywords = keywords
        self._none = none
        self._values: dict[str, Setting] = {}
        self._ignored: dict[str, str] = {}
        self._given_as: dict[str, str] = {}
        self._timeouts_off = False

    def read_all(self, options: Mapping[str, object]) -> Options:
        for name, value in options.items():
            self._read(name, value)
        if self._timeouts_off:
            self._values["message_timeout"] = None
        return Options(self._values, self._ignored)

    def _read(self, name: str, value: object) -> None:
        if name in OPTIONS:
            self._take(name, name, value, f"{name}={self._spelt(value)}")
        elif name == storm_names.TIMEOUT_SWITCH:
            self._switch_timeouts(name, value)
        elif mapped := storm_names.MAPPED.get(name):
            self._translate(mapped, name, value)
        elif reason := storm_names.REFUSED.get(name):
            self._refuse(name, value, reason)
        elif reason := storm_names.why_ignored(name):
            self._ignore(name, value, reason)
        else:
            raise self._unknown(name)

    def _take(self, option: str, name: str, value: object, shown: str) -> None:
        self._check_place(option, name)
        if option in self._given_as:
            raise self._error(f"{self._given_as[option]} and {name} are one option; give it once")
        self._given_as[option] = name
        try:
            self._values[option] = _checked(option, value)
        except (msgspec.ValidationError, UnicodeEncodeError):  # text of the command line may be no UTF-8
            raise self._error(f"{shown}: expected {expected(option, self._none)}") from None

    def _translate(self, mapped: storm_names.Mapped, name: str, value: object) -> None:
        try:
            ours = mapped.convert(value)
        except ValueError as error:
            raise self._error(f"{name}={self._spelt(value)}: {error}") from None
        here = f"{mapped.option}={self._spelt(ours)}"
        self._take(mapped.option, name, ours, f"{name}={self._spelt(value)} (here {here})")

    def _switch_timeouts(self, name: str, value: object) -> None:
        self._check_place("message_timeout", name)
        if not isinstance(value, bool):
            raise self._error(f"{name}={self._spelt(value)}: expected true or false")
        self._timeouts_off = not value

    def _refuse(self, name: str, value: object, reason: str) -> None:
        if value is not None:  # Storm writes null for what is not set
            raise self._error(f"{name} is not supported: {reason}")

    def _ignore(self, name: str, value: object, reason: str) -> None:
        if value is not None:
            self._ignored[name] = reason

    def _check_place(self, option: str, name: str) -> None:
        if option in self._allowed:
            return
        owner = next((f"{kind}s" for kind, own in COMPONENT_OPTIONS.items() if option in own), "the topology")
        raise self._error(f"{name} belongs to {owner}; here may stand {', '.join(self._allowed)}")

    def _unknown(self, name: str) -> InvalidConfiguration:
        ours = (*self._allowed, *self._keywords)
        near = get_close_matches(name, (*ours, *storm_names.NAMES))
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(ours)}"
        return self._error(f"unknown option {name!r}; {hint}")

    def _spelt(self, value: object) -> str:
        return self._none if value is None else repr(value)

    def _error(self, what: str) -> InvalidConfiguration:
        return InvalidConfiguration(f"{self._where}: {what}")


def _checked(option: str, value: object) -> Setting:
    """Return ``value`` in the type of ``option``: an int becomes a float where one is meant, and a bool is not an
    int."""
    setting: Setting = getattr(msgspec.convert({option: value}, Configuration), option)
    if isinstance(setting, float) and not math.isfinite(setting):
        raise msgspec.ValidationError("not finite")
    return setting


def expected(option: str, none: str = "None") -> str:
    """Return type and range of ``option`` in words: "a finite number of seconds > 0 or None"."""
    struct = inspect.type_info(Configuration)
    assert isinstance(struct, inspect.StructType)
    return _words(next(field.type for field in struct.fields if field.name == option), none)


def _words(kind: inspect.Type, none: str) -> str:
    match kind:
        case inspect.UnionType(types=types):
            return " or ".join(_words(each, none) for each in types)
        case inspect.IntType(ge=low, le=high):
            return f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
        case inspect.FloatType(ge=low, le=high) if high is not None:
            return f"a number from {low} to {high}"
        case inspect.FloatType(gt=above, ge=low):
            return f"a finite number of seconds {f'>= {low}' if above is None else f'> {above}'}"
        case inspect.LiteralType(values=values):
            return " or ".join(map(repr, values))
        case _:
            return none
