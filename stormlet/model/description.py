"""The frozen description of a topology, collected by the builder and read by the plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from stormlet.core.state.commits import StateId
from stormlet.core.state.redeliveries import IDS
from stormlet.core.state.redeliveries import NAME as REDELIVERED
from stormlet.core.state.tables import Declared
from stormlet.core.state.timers import NAME as TIMERS
from stormlet.errors import InvalidTopology
from stormlet.model.configuration import Configuration, configure
from stormlet.model.logic import LogicKind, SourceKind, check_code, source_kind, yields_to_all
from stormlet.model.state.committers import RowSpec
from stormlet.model.state.declared import Value
from stormlet.model.streams import Output, Subscription
from stormlet.model.traits import bolt_traits, spout_traits


def components_in_order(successors: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The strongly connected components, upstream first; a node without a cycle is a component of its own.

    Tarjan's algorithm, without recursion, so that a long chain of bolts cannot exhaust the stack.
    """
    found: list[list[str]] = []
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    on_path: dict[str, None] = {}
    for start in successors:
        if start in index:
            continue
        work = [(start, iter(successors[start]))]
        _enter(start, index, lowest, path, on_path)
        while work:
            node, following = work[-1]
            child = next((each for each in following if each not in index or each in on_path), None)
            if child is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == index[node]:
                    found.append(_leave(node, path, on_path))
            elif child in index:
                lowest[node] = min(lowest[node], index[child])
            else:
                _enter(child, index, lowest, path, on_path)
                work.append((child, iter(successors[child])))
    found.reverse()
    return found


def _enter(
    node: str, index: dict[str, int], lowest: dict[str, int], path: list[str], on_path: dict[str, None]
) -> None:
    index[node] = lowest[node] = len(index)
    path.append(node)
    on_path[node] = None


def _leave(node: str, path: list[str], on_path: dict[str, None]) -> list[str]:
    start = path.index(node)
    component = path[start:]
    del path[start:]
    for each in component:
        del on_path[each]
    return component


LONG_EPOCH = 3600.0
"""Seconds of an epoch whose source says how many messages it has: it ends all the same."""

Executor = Literal["loop", "thread"]
OnError = Literal["fail", "restart", "stop"]
"""Effect of an exception in ``execute``: the input fails, the task is restarted as well, or the topology stops."""


class SpoutSpec(msgspec.Struct, frozen=True):
    """One spout of the description."""

    id: str
    source: object
    kind: SourceKind
    parallelism: int
    outputs: Mapping[str, Output]
    options: Mapping[str, object]

    def with_source(self, source: object) -> SpoutSpec:
        """Return the same spout, its streams and options, with another source; it has one task where several could not
        share that source (law S8).

        Raises :class:`~stormlet.errors.InvalidTopology` for an object that is not a source.
        """
        kind = source_kind(self.id, source)
        check_code(f"spout {self.id!r}", source, "loop")
        alone = yields_to_all(source, kind) or spout_traits(source).single_task
        parallelism = 1 if alone else self.parallelism
        return msgspec.structs.replace(self, source=source, kind=kind, parallelism=parallelism)


def place_of_sources(spouts: Iterable[SpoutSpec]) -> str:
    """Return the place that a source names for the state of its topology; empty if none does. Raise
    :class:`~stormlet.errors.InvalidTopology` if two name different ones."""
    named = {each.id: place for each in spouts if (place := spout_traits(each.source).state_place)}
    if len(set(named.values())) > 1:
        raise InvalidTopology(
            f"spouts {' and '.join(map(repr, named))} have checkpoints of their own for their epochs, and a topology "
            f"has one state; leave out both, and set state= on the topology"
        )
    return next(iter(named.values()), "")


class BoltSpec(msgspec.Struct, frozen=True):
    """One bolt of the description."""

    id: str
    logic: object
    kind: LogicKind
    parallelism: int
    outputs: Mapping[str, Output]
    options: Mapping[str, object]
    inputs: Sequence[Subscription[object]]
    tick: float | None
    """Seconds between ticks, or None (law B5)."""
    concurrency: int
    executor: Executor
    on_error: OnError
    ticks: bool = False
    """True if it has a method ``tick``, or may have one: a factory's bolt is not known before it is made."""
    keyed: bool = False
    """True if it has a state for each key (law K1): a ``KeyedBolt``, or a function with a cell."""
    states: Mapping[str, Declared] = {}
    """The states that it declares, by their names in the store; its timers are one of them."""
    state: Value[Any] | None = None
    """The state of a function, which is handed to it as a cell."""
    rows: RowSpec | None = None
    """The rows that it gets by epochs, if it is a committer (law X9)."""
    by_epochs: bool = False
    """True if it works on whole epochs: an ``EpochBolt``."""

    @property
    def timed(self) -> bool:
        """True if its state depends on the clock: by timers or a ``ttl``."""
        return TIMERS in self.states or any(each.ttl is not None for each in self.states.values())


class Description(msgspec.Struct, frozen=True):
    """A whole topology, ready to be planned."""

    name: str
    configuration: Configuration
    spouts: Mapping[str, SpoutSpec]
    bolts: Mapping[str, BoltSpec]
    options: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    """The options of the configuration that the user gave to the topology."""
    state: str = ""
    """The place of the topology's own state, in words; empty if it has none."""

    @property
    def components(self) -> Mapping[str, SpoutSpec | BoltSpec]:
        """All components by id, spouts first, in the order they were declared."""
        return {**self.spouts, **self.bolts}

    @property
    def has_epochs(self) -> bool:
        """True if a bolt needs that messages belong to epochs, whether these become durable or not (law X1)."""
        return any(bolt.keyed or bolt.by_epochs or bolt.rows is not None for bolt in self.bolts.values())

    @property
    def states(self) -> Mapping[StateId, Declared]:
        """All that is kept by name: the states of bolts, and what brokers may give again (law K1, X8)."""
        of_bolts = {
            StateId(bolt.id, name): declared
            for bolt in self.bolts.values()
            for name, declared in bolt.states.items()
        }
        return {**of_bolts, **{StateId(id, REDELIVERED): IDS for id in self.redelivering}}

    @property
    def redelivering(self) -> Sequence[str]:
        """The spouts over brokers that give again what they have no ack for (law X8)."""
        return [id for id, spout in self.spouts.items() if spout_traits(spout.source).redelivers]

    @property
    def has_cut_epochs(self) -> bool:
        """True if epochs are those of its one source, which cuts them (law X8)."""
        return (
            all(spout_traits(spout.source).cuts_epochs for spout in self.spouts.values())
            and len(self.spouts) == 1
        )

    def validate(self, *, state_survives: bool = False) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` if there is no spout, if a bolt has no input, or if one
        would lose its state where a spout above it resumes. ``state_survives`` is true where state outlives the
        process."""
        if not self.spouts:
            raise InvalidTopology(
                f"topology {self.name!r} does not have any spout; add one with topology.spout(...)"
            )
        for bolt in self.bolts.values():
            if not bolt.inputs:
                raise InvalidTopology(
                    f"bolt {bolt.id!r} has no input; subscribe it to a stream, such as lines.shuffle()"
                )
        for spout in self.spouts.values():
            given = spout_traits(spout.source)
            if given.resumes and not state_survives:
                self._check_state_below(spout.id, given.state_advice)

    def _check_state_below(self, spout: str, advice: str) -> None:
        for id in self._below(spout):
            traits = bolt_traits(self.bolts[id].logic)
            if traits.keeps_state or self.bolts[id].keyed:
                raise InvalidTopology(
                    f"bolt {id!r} keeps state, which a run that goes on from the checkpoint of spout {spout!r} would "
                    f"miss; {traits.state_advice or f'{advice}, or keep the state outside the process'}"
                )

    def with_sources(self, sources: Mapping[str, object]) -> Description:
        """Return the same description with other sources for the spouts of these ids; raise
        :class:`~stormlet.errors.InvalidTopology` for an object that is not a source."""
        replaced = {id: self.spouts[id].with_source(source) for id, source in sources.items()}
        return msgspec.structs.replace(self, spouts={**self.spouts, **replaced})

    def configured(
        self, configuration: Configuration, where: str, given: Collection[str] = ()
    ) -> tuple[Description, Mapping[str, Configuration]]:
        """Return the same description with another configuration, and the configuration of each component. ``where``
        opens error messages; ``given`` names the options that the user set, apart from the topology's own.

        Raises :class:`~stormlet.errors.InvalidConfiguration` where the options of a component do not go
        together with it.
        """
        spouts, given = self.spouts, (*self.options, *given)
        configuration = self._with_epochs(configuration, given)
        if "max_spout_pending" not in given:
            spouts = {id: self._with_room(spec, configuration) for id, spec in spouts.items()}
        specs: dict[str, SpoutSpec | BoltSpec] = {**spouts, **self.bolts}
        components = {
            id: configure(configuration, spec.options, f"{id!r} of {where}") for id, spec in specs.items()
        }
        bolts = {
            id: msgspec.structs.replace(spec, tick=components[id].tick if spec.ticks else None)
            for id, spec in self.bolts.items()
        }
        return msgspec.structs.replace(
            self, configuration=configuration, spouts=spouts, bolts=bolts
        ), components

    def _with_epochs(self, configuration: Configuration, given: Collection[str]) -> Configuration:
        """Return the configuration with epochs as long as a source wants them, as far as the user has not said how long
        they are."""
        lengths = [spout_traits(spout.source).epoch_messages for spout in self.spouts.values()]
        most = max((length for length in lengths if length is not None), default=None)
        if most is None:
            return configuration
        wanted = {"epoch_messages": most, "epoch_seconds": LONG_EPOCH}
        return msgspec.structs.replace(
            configuration, **{name: value for name, value in wanted.items() if name not in given}
        )

    def _with_room(self, spout: SpoutSpec, configuration: Configuration) -> SpoutSpec:
        """Return the spout with as many messages pending as the bolts below it need, but no more than it should
        have."""
        below = (self.bolts[id] for id in self._below(spout.id))
        least = max((bolt_traits(bolt.logic).least_pending * bolt.parallelism for bolt in below), default=0)
        default, most = configuration.max_spout_pending, spout_traits(spout.source).most_pending
        if "max_spout_pending" in spout.options or default is None:
            return spout
        wanted = max(default, least)
        pending = wanted if most is None else min(wanted, most)
        if pending == default:
            return spout
        return msgspec.structs.replace(spout, options={**spout.options, "max_spout_pending": pending})

    def _below(self, component: str) -> Iterable[str]:
        successors, below, left = self._successors(), dict[str, None](), [component]
        while left:
            new = [id for id in successors[left.pop()] if id not in below]
            below.update(dict.fromkeys(new))
            left += new
        return below

    def sources_of(self, ids: Collection[str]) -> set[str]:
        """Return the components that these subscribe to."""
        bolts = [self.bolts[id] for id in ids if id in self.bolts]
        return {each.source.component for bolt in bolts for each in bolt.inputs}

    def in_order(self) -> list[list[str]]:
        """Return the components upstream first; those that form a cycle stand together (law C2)."""
        return components_in_order(self._successors())

    def cycles(self) -> list[list[str]]:
        """Return the cycles. They are allowed, and their edges do not wait for room (law B6)."""
        loops = [
            bolt.id
            for bolt in self.bolts.values()
            if any(each.source.component == bolt.id for each in bolt.inputs)
        ]
        return [group for group in self.in_order() if len(group) > 1 or group[0] in loops]

    def _successors(self) -> dict[str, list[str]]:
        successors: dict[str, list[str]] = {id: [] for id in self.components}
        for bolt in self.bolts.values():
            for subscription in bolt.inputs:
                successors[subscription.source.component].append(bolt.id)
        return successors
