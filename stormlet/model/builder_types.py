"""Types of the arguments of ``Topology`` and its methods, for type checkers and editors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Literal, Protocol, TypeAlias, TypedDict, TypeVar

from stormlet.model.components import BoltBase, To
from stormlet.model.description import Executor, OnError

T = TypeVar("T")
U = TypeVar("U")

AddressedOutputs: TypeAlias = Iterator[To[U]] | AsyncIterator[To[U]] | Awaitable[To[U] | None] | To[U] | None
"""Result of a function that addresses all its outputs, so that nothing is known of the default stream."""


class BoltFactory(Protocol[T, U]):
    """Makes a bolt: its class, or a function. A protocol, as mypy then reads T from it before the inputs."""

    def __call__(self) -> BoltBase[T, U]:
        """Return a new instance, for one task."""
        ...


class NumberOptions(TypedDict, total=False):
    """The options of a topology that are numbers."""

    message_timeout: float | None
    timeout_buckets: int
    ackers: int
    acker_high_water: int | None
    max_spout_pending: int | None
    queue_capacity: int
    slice: float
    idle_max: float
    max_attempts: int
    replay_delay: float
    replay_delay_max: float
    max_restarts: int
    restart_window: float
    restart_delay: float
    restart_delay_max: float
    drain_timeout: float | None
    record_edges: float
    explain_stuck: float | None
    epoch_messages: int
    epoch_seconds: float
    history: float
    tick: float | None


class TopologyOptions(NumberOptions, total=False):
    """Options of a topology or of one run, for type checkers and editors. At run time
    :class:`~stormlet.model.configuration.Configuration` checks them."""

    timeout_restarts_on: Literal["init", "activity"]


class SpoutOptions(TypedDict, total=False):
    """Options of a spout, apart from its source and outputs; see
    :class:`~stormlet.model.configuration.Configuration`."""

    parallelism: int
    max_spout_pending: int | None
    max_attempts: int
    replay_delay: float
    replay_delay_max: float
    idle_max: float
    max_restarts: int
    restart_window: float
    restart_delay: float
    restart_delay_max: float


class BoltOptions(TypedDict, total=False):
    """Options of a bolt, apart from its logic and inputs; see
    :meth:`Topology.bolt <stormlet.topology.Topology.bolt>`."""

    parallelism: int
    outputs: object
    tick: float | None
    concurrency: int
    executor: Executor
    on_error: OnError
    queue_capacity: int
    max_restarts: int
    restart_window: float
    restart_delay: float
    restart_delay_max: float
