"""Streams that lead in circles or nowhere, and groupings that reach no task or only some."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.checks.finding import Finding, options_of, upstream
from stormlet.core.groupings import Fields, Global, PartialKey
from stormlet.drawing.anchoring import code_in, tracks
from stormlet.model.checks.key_types import unroutable_types
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind
from stormlet.model.streams import Subscription


def cycles(description: Description) -> Iterator[Finding]:
    """Inside a cycle nothing waits for room (law B6)."""
    for group in description.cycles():
        path = shortest_cycle(description, group)
        unbounded = _unbounded_spouts(description, group)
        others = [each for each in group if each not in path]
        more = f", entangled with {_listed(others)}" if others else ""
        way = f"{' -> '.join(map(repr, path))} is a cycle{more}"
        bound = (
            f"and nothing bounds what {_listed(unbounded)} sends into them"
            if unbounded
            else "so only max_spout_pending bounds them"
        )
        yield Finding(
            "cycle",
            path[0],
            f"{way}: its queues hold nobody back, {bound}",
            ("track the messages and set max_spout_pending, and " if unbounded else "")
            + "make sure that every tuple leaves the cycle: one that goes round for ever is never done",
        )


def shortest_cycle(description: Description, group: list[str]) -> list[str]:
    """A shortest way through the group's first component and back to it."""
    start = group[0]
    ways = [[start]]
    seen = {start}
    for way in ways:  # grows
        for bolt in description.bolts.values():
            if way[-1] in description.sources_of([bolt.id]):
                if bolt.id == start:
                    return [*way, start]
                if bolt.id in group and bolt.id not in seen:
                    seen.add(bolt.id)
                    ways.append([*way, bolt.id])
    raise AssertionError(f"{group} is no cycle")


def unheard_spouts(description: Description) -> Iterator[Finding]:
    """Spouts that nobody subscribes to: a message that reaches no task is acked (law L11)."""
    subscribed = _subscribed(description)
    for spout in description.spouts.values():
        if not any((spout.id, stream) in subscribed for stream in spout.outputs):
            yield Finding(
                "unheard spout",
                spout.id,
                f"nobody subscribes to spout {spout.id!r}: its messages reach no bolt and count as acked at once",
                "subscribe a bolt to it, or leave it out",
            )


def unused_streams(description: Description) -> Iterator[Finding]:
    """Streams that are declared, or that code is annotated to emit to, and that nobody subscribes to."""
    subscribed = _subscribed(description)
    collected = _reached_by_hosts(description)
    for component in description.components.values():
        unused = [stream for stream in component.outputs if (component.id, stream) not in subscribed]
        if isinstance(component, SpoutSpec) and len(unused) == len(component.outputs):
            continue  # an unheard spout
        for stream in unused:
            if _is_meant(component, stream) and not (stream == DEFAULT_STREAM and component.id in collected):
                yield _unused(component, stream)


def _unused(component: SpoutSpec | BoltSpec, stream: str) -> Finding:
    kind = "spout" if isinstance(component, SpoutSpec) else "bolt"
    values = component.outputs[stream].schema.name
    of_type = "" if values == "object" else f" ({values})"
    way_out = (
        "annotate the bolt as returning or emitting None if it is a sink"
        if len(component.outputs) == 1
        else "leave it out of outputs="
    )
    return Finding(
        "unused stream",
        component.id,
        f"nobody subscribes to stream {stream!r}{of_type} of {kind} {component.id!r}: what it emits there goes nowhere",
        f"subscribe a bolt to it, or {way_out}",
    )


def _is_meant(component: SpoutSpec | BoltSpec, stream: str) -> bool:
    """True if the component can be expected to emit there: it was declared, or its code is annotated to."""
    if len(component.outputs) > 1 or stream != DEFAULT_STREAM:
        return True
    code = code_in(component)
    if code is not None and not code.emits_to(stream):
        return False
    return component.outputs[stream].schema.name != "object"


def _reached_by_hosts(description: Description) -> set[str]:
    """The components downstream of spouts that the host feeds: it may ``collect`` their streams (law C4)."""
    reached = {id for id, spout in description.spouts.items() if spout.kind is SourceKind.FED}
    for group in description.in_order():
        if description.sources_of(group) & reached:
            reached.update(group)
    return reached


def _subscribed(description: Description) -> set[tuple[str, str]]:
    return {
        (each.source.component, each.source.stream)
        for bolt in description.bolts.values()
        for each in bolt.inputs
    }


def _unbounded_spouts(description: Description, group: list[str]) -> list[str]:
    """The spouts upstream that may have any number of tuples on the way: what is not tracked is not pending (law
    L10), and what is not acked by ackers is so at once (law L9)."""
    above = {each.id for each in upstream(description, *(description.bolts[id] for id in group))}
    return [
        id for id, spout in description.spouts.items() if id in above and _is_unbounded(description, spout)
    ]


def _is_unbounded(description: Description, spout: SpoutSpec) -> bool:
    configuration = options_of(description, spout)
    is_tracked = all(tracks(spout, stream) for stream in spout.outputs)
    return configuration.max_spout_pending is None or not (is_tracked and configuration.ackers)


def _listed(ids: list[str]) -> str:
    return ", ".join(map(repr, ids))


def unroutable_keys(description: Description) -> Iterator[Finding]:
    """Keys whose annotated type has no stable hash: an emit of one raises ``UnroutableKey``."""
    for bolt in description.bolts.values():
        for each in bolt.inputs:
            if isinstance(each.grouping, Fields | PartialKey):
                yield from _unroutable_key(description, bolt.id, each, each.grouping)


def _unroutable_key(
    description: Description, bolt: str, each: Subscription[object], grouping: Fields | PartialKey
) -> Iterator[Finding]:
    schema = description.components[each.source.component].outputs[each.source.stream].schema
    kinds = unroutable_types(schema, grouping)
    if kinds:
        names = " and ".join(kind.__qualname__ for kind in kinds)
        yield Finding(
            "unroutable key",
            bolt,
            f"the {grouping.name} grouping of bolt {bolt!r} on {each.source} has a key of type {names}, which has no "
            "stable hash: emitting such a value raises UnroutableKey",
            "group by other fields, or by a function that returns text, numbers or a tuple of them",
        )


def idle_tasks(description: Description) -> Iterator[Finding]:
    """A global grouping gives everything to the first task."""
    for bolt in description.bolts.values():
        if bolt.parallelism > 1 and all(isinstance(each.grouping, Global) for each in bolt.inputs):
            yield Finding(
                "idle tasks",
                bolt.id,
                f"bolt {bolt.id!r} has parallelism={bolt.parallelism}, but a global grouping gives everything to its "
                "first task: the others have nothing to do",
                "set parallelism=1, or use another grouping",
            )
