"""Checks of a component when it is added, except those of its code: for these, see :mod:`stormlet.model.logic`.

``where`` opens error messages; it names the component.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, cast

from stormlet.core.state.codecs import has_lone_surrogates
from stormlet.errors import InvalidConfiguration, InvalidTopology
from stormlet.model.components import BoltBase, overrides
from stormlet.model.description import SpoutSpec
from stormlet.model.logic import LogicKind, SourceKind, inferred_schema, yields_to_all
from stormlet.model.streams import Output, Stream, Subscription, outputs_of
from stormlet.model.traits import spout_traits


class OneShotSources:
    """The iterators that runs of one topology have used."""

    def __init__(self) -> None:
        self._used: list[object] = []

    def use(self, spouts: Iterable[SpoutSpec]) -> None:
        """Note the sources of a run that begins; raise :class:`~stormlet.errors.InvalidTopology` for an iterator that
        an earlier run has used."""
        for spec in spouts:
            if spec.kind is SourceKind.ITERABLE and _is_one_shot(spec.source):
                if any(spec.source is each for each in self._used):
                    raise InvalidTopology(
                        f"spout {spec.id!r}: its iterator was used by an earlier run and cannot start again; "
                        f"pass a generator function or a list"
                    )
                self._used.append(spec.source)


def _is_one_shot(source: object) -> bool:
    return isinstance(source, Iterator | AsyncIterator)


def check_id(where: str, id: object) -> None:
    """Raise :class:`InvalidTopology` for an object that cannot be the id of a component."""
    if not isinstance(id, str):
        raise InvalidTopology(f"{where}: an id is a str, not {id!r}")
    if not id.strip() or id.startswith("__"):
        raise InvalidTopology(
            f"{where}: an id must not be empty or begin with '__', which marks the engine's own components"
        )
    check_text(where, id)


def check_text(where: str, name: str) -> None:
    """Raise :class:`InvalidTopology` for a name that no file of state, log or letters could hold."""
    if has_lone_surrogates(name):
        raise InvalidTopology(
            f"{where}: a name must not have halves of characters (lone surrogates), which no file can hold; choose "
            f"another one"
        )


def check_at_least_one(where: str, name: str, value: object) -> None:
    """Raise :class:`InvalidConfiguration` unless the value is an int from 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidConfiguration(f"{where}: {name} must be an int, not {value!r}")
    if value < 1:
        raise InvalidConfiguration(f"{where}: {name} must be at least 1, not {value}")


def check_one_of(where: str, name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise :class:`InvalidConfiguration` unless the value is one of the choices."""
    if value not in choices:
        raise InvalidConfiguration(
            f"{where}: {name} must be one of {', '.join(map(repr, choices))}, not {value!r}"
        )


def check_sharing(id: str, source: object, kind: SourceKind, parallelism: int) -> None:
    """Raise :class:`InvalidTopology` for several tasks that could not share this source (law S8)."""
    if parallelism > 1 and yields_to_all(source, kind):
        raise InvalidTopology(
            f"spout {id!r}: with parallelism={parallelism} every task would yield the same values; use "
            f"parallelism=1, or a generator function that takes the task context and yields its share: def "
            f"{id}(context): ..."
        )
    traits = spout_traits(source)
    if parallelism > 1 and traits.single_task:
        raise InvalidTopology(
            f"spout {id!r}: with parallelism={parallelism} {traits.single_task_reason}; use parallelism=1"
        )


def check_tick(where: str, logic: object, kind: LogicKind, tick: float | None) -> None:
    """Raise :class:`InvalidTopology` for seconds between ticks where no ``tick`` is defined (law B5)."""
    if tick is not None and not may_tick(logic, kind):
        raise InvalidTopology(
            f"{where} has tick={tick}, but no method tick(self, out); define it, or leave out tick="
        )


def may_tick(logic: object, kind: LogicKind) -> bool:
    """Return True if the bolt has a method ``tick``, or may have one: a factory's bolt is not known before it is
    made."""
    if kind is LogicKind.FUNCTION:
        return False
    return not isinstance(logic, type) or overrides(logic, BoltBase, "tick")


def check_inputs(
    where: str, inputs: Iterable[Subscription[Any] | Stream[Any]], topology: object, name: str
) -> None:
    """Raise :class:`InvalidTopology` unless each input is a grouped stream of this topology, which is called
    ``name``."""
    for each in inputs:
        if isinstance(each, Stream):
            raise InvalidTopology(f"{where}: {each.id} needs a grouping, such as .shuffle() or .fields(...)")
        if not isinstance(cast("object", each), Subscription):
            raise InvalidTopology(
                f"{where}: {each!r} is no input; pass a grouped stream, such as lines.shuffle()"
            )
        if each.topology is not topology:
            raise InvalidTopology(f"{where}: {each.source} belongs to another topology than {name!r}")


def declared_outputs(where: str, declared: object, logic: object) -> Mapping[str, Output]:
    """Return the streams of a component with ``outputs=declared``, by name. Raise :class:`InvalidTopology` if there are
    none, or one has no valid name or schema."""
    try:
        streams = outputs_of(declared, inferred_schema(logic))
    except InvalidTopology as error:
        raise InvalidTopology(f"{where}: {error}") from None
    for name in streams:
        if not isinstance(cast("object", name), str):
            raise InvalidTopology(f"{where}: a stream's name is a str, not {name!r}")
        if not name or name.startswith("__"):
            raise InvalidTopology(
                f"{where}: {name!r} is no valid stream name; it must not be empty or begin with '__'"
            )
        check_text(f"{where}, stream {name!r}", name)
    if not streams:
        raise InvalidTopology(f"{where}: outputs declares no stream; leave it out for one default stream")
    return streams
