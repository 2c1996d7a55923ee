"""Traits of spouts and bolts that are read before an instance exists.

A component declares them as attributes of its class, or of the object that makes its instances, which may know better:
a sink keeps state in one of its modes alone. Each is optional; an attribute of another type than declared here counts
as absent. The advice in an error that refuses a component is a trait, too: only the component knows its own options.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import msgspec

from stormlet.model.logic import component_class, what_is_called

Traits = TypeVar("Traits", bound=msgspec.Struct)


class SpoutTraits(msgspec.Struct, frozen=True):
    """Traits of a source."""

    single_task: bool = False
    """See :attr:`stormlet.model.components.Spout.single_task`."""
    single_task_reason: str = "every task would emit the same"
    """The reason for that, in words."""
    most_pending: int | None = None
    """See :attr:`stormlet.model.components.Spout.most_pending`."""
    resumes: bool = False
    """See :attr:`stormlet.model.components.Spout.resumes`."""
    resumable: bool = False
    """See :attr:`stormlet.model.components.Spout.resumable`."""
    redelivers: bool = False
    """See :attr:`stormlet.model.components.Spout.redelivers`."""
    resume_advice: str = (
        "read context.resume in its open and say resumable = True, or say redelivers = True if a broker gives again "
        "what was not acked, or leave out state="
    )
    """The way out where a state is to outlive the process, and it is neither of the two."""
    lets_go: bool = False
    """True if it is at a broker, which lets go of what it is told: an epoch of it cannot be run again."""
    state_place: str = ""
    """The file in which it keeps its position, and with that the state of its topology, where that names none (law
    X8)."""
    epoch_messages: int | None = None
    """The ``epoch_messages`` of its topology, where that sets none."""
    cuts_epochs: bool = False
    """True if it cuts epochs itself (law X8), where messages belong to epochs."""
    state_advice: str = "let that spout begin anew"
    """One way out for a bolt below that keeps state, if it :attr:`resumes`."""


class BoltTraits(msgspec.Struct, frozen=True):
    """Traits of a bolt."""

    needs_acks: bool = False
    """See :attr:`stormlet.model.components.BoltBase.needs_acks`."""
    least_pending: int = 0
    """See :attr:`stormlet.model.components.BoltBase.least_pending`."""
    keeps_state: bool = False
    """See :attr:`stormlet.model.components.BoltBase.keeps_state`."""
    state_advice: str = ""
    """The way out below a spout that resumes, if it :attr:`keeps_state` and knows one."""
    needs_epochs: bool = False
    """True if it works on epochs that outlive the process: by ``state=``, or by a source that cuts them."""
    epochs_advice: str = "set state= on the topology"
    """The way out where they do not."""


def spout_traits(source: object) -> SpoutTraits:
    """Return the traits that a source declares."""
    return _declared(source, SpoutTraits)


def bolt_traits(logic: object) -> BoltTraits:
    """Return the traits that the logic of a bolt declares."""
    return _declared(logic, BoltTraits)


def _declared(component: object, traits: type[Traits]) -> Traits:
    declaring = component_class(component) or what_is_called(component)
    given = {name: getattr(declaring, name, None) for name in traits.__struct_fields__}
    kinds = _kinds(traits)
    return traits(**{name: value for name, value in given.items() if isinstance(value, kinds[name])})


@cache
def _kinds(traits: type[msgspec.Struct]) -> Mapping[str, type]:
    """The type of each trait. Annotations are read once: that takes longer than all else about a component."""
    return {each.name: each.type for each in msgspec.structs.fields(traits)}
