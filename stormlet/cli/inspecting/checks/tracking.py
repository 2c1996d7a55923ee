"""Messages that nobody tracks or that no attempt gets through, inputs that nobody settles, and outputs of no tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stormlet.cli.inspecting.anchoring import Code, code_of, is_untied
from stormlet.cli.inspecting.checks.finding import Finding, upstream
from stormlet.model.components import Bolt
from stormlet.model.configuration import Configuration, configure
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind, component_class
from stormlet.model.traits import bolt_traits

EXPECTED = {
    SourceKind.FED: "awaiting one raises NotTracked",
    SourceKind.GENERATOR: "none that fails is replayed",
    SourceKind.ITERABLE: "none that fails is replayed",
    SourceKind.FACTORY: "its fail is never called",
}


def untracked_messages(description: Description) -> Iterator[Finding]:
    """Without ackers, tracked messages count as acked (law L9)."""
    if description.configuration.ackers:
        return
    for spout in description.spouts.values():
        if any(tracks(spout, stream) for stream in spout.outputs):
            yield Finding(
                "no ackers",
                spout.id,
                f"ackers=0: the messages of spout {spout.id!r} count as acked when they are emitted, "
                f"and {EXPECTED[spout.kind]}",
                "set ackers=1 or more, or emit without message_id from a Spout class",
            )


def tracks(spout: SpoutSpec, stream: str) -> bool:
    """True if the spout may emit tracked messages to the stream (law L10)."""
    return not is_untied(component_class(spout.source), stream, "message_id")


def anchors(bolt: BoltSpec, stream: str) -> bool:
    """True if the bolt's emits to the stream may be anchored (laws L8, B1)."""
    cls = component_class(bolt.logic)
    return not (_is_bolt(cls) and is_untied(cls, stream, "anchors"))


def unacked_inputs(description: Description) -> Iterator[Finding]:
    """A ``Bolt`` must ack or fail what it gets (law B2)."""
    for bolt, code in _bolts_with_code(description):
        if not code.settles:
            yield Finding(
                "unsettled inputs",
                bolt.id,
                f"bolt {bolt.id!r} is a Bolt, and never calls out.ack or out.fail: none of its inputs is ever done",
                "call out.ack(tup), or derive from BasicBolt, which acks by itself",
            )


def unanchored_outputs(description: Description) -> Iterator[Finding]:
    """Emits without anchors, which leave the tree (law L8); ``anchors=()`` says that it is meant."""
    for bolt, code in _bolts_with_code(description):
        if any(each.method == "execute" and "anchors" not in each.keywords for each in code.emits):
            yield Finding(
                "unanchored output",
                bolt.id,
                f"bolt {bolt.id!r} is a Bolt, and emits in execute without anchors: what fails further down is not "
                "replayed",
                "pass anchors=tup, or derive from BasicBolt; anchors=() says that it is meant",
            )


def _bolts_with_code(description: Description) -> Iterator[tuple[BoltSpec, Code]]:
    for bolt in description.bolts.values():
        cls = component_class(bolt.logic)
        code = None if cls is None or not _is_bolt(cls) else code_of(cls)
        if code is not None:
            yield bolt, code


def _is_bolt(cls: Any) -> bool:
    """True if it anchors and acks by itself (law B2)."""
    return cls is not None and issubclass(cls, Bolt)


def unowned_outputs(description: Description) -> Iterator[Finding]:
    """Emits of ``finish`` and ``tick``, which nobody tracks (laws B5, C2): if a sink that lives by acks fails on them,
    nothing is replayed, and nobody learns of it unless the sink stops the topology."""
    for bolt in description.bolts.values():
        if bolt.on_error == "stop" or not bolt_traits(bolt.logic).needs_acks:
            continue
        for source in upstream(description, bolt):
            method = _unanchored_method(source) if isinstance(source, BoltSpec) else None
            if method is not None:
                yield Finding(
                    "unowned output",
                    bolt.id,
                    f"bolt {source.id!r} emits in {method}, what comes of that reaches bolt {bolt.id!r}, and belongs "
                    "to no message: if it cannot be written, it is lost, and the run goes on",
                    f"give bolt {bolt.id!r} on_error='stop', so that a write that fails crashes the topology",
                )
                break


def _unanchored_method(bolt: BoltSpec) -> str | None:
    """The method that is called without an input, and is seen to emit without anchors."""
    cls = component_class(bolt.logic)
    code = None if cls is None else code_of(cls)
    called = ["finish"] if bolt.tick is None else ["finish", "tick"]
    emits = () if code is None else code.emits
    return next((each.method for each in emits if each.method in called and not each.ties("anchors")), None)


def poison_messages(description: Description) -> Iterator[Finding]:
    """Bolts that each failed attempt restarts: a message with more attempts than the bolt has restarts crashes the
    topology before it becomes a dead letter (laws S6, C5)."""
    for bolt in description.bolts.values():
        if bolt.on_error != "restart":
            continue
        restarts = _options(description, bolt)
        for spout in upstream(description, bolt):
            if isinstance(spout, SpoutSpec) and _crash(restarts, _options(description, spout), spout):
                yield _finding(bolt, restarts.max_restarts, spout, _options(description, spout).max_attempts)
                break


def _crash(restarts: Configuration, replays: Configuration, spout: SpoutSpec) -> bool:
    """True if the engine replays a message often enough, and soon enough."""
    if spout.kind not in (SourceKind.GENERATOR, SourceKind.ITERABLE) or not replays.ackers:
        return False
    slowest = sum(_pause(replays, restarts, after) for after in range(restarts.max_restarts))
    return restarts.max_restarts < replays.max_attempts and slowest < restarts.restart_window


def _pause(replays: Configuration, restarts: Configuration, after: int) -> float:
    """Seconds between two attempts: until the replay, and until there is somebody to execute it."""
    return max(
        min(replays.replay_delay * 2.0**after, replays.replay_delay_max),
        min(restarts.restart_delay * 2.0**after, restarts.restart_delay_max),
    )


def _options(description: Description, component: SpoutSpec | BoltSpec) -> Configuration:
    return configure(description.configuration, component.options, repr(component.id))


def _finding(bolt: BoltSpec, restarts: int, spout: SpoutSpec, attempts: int) -> Finding:
    return Finding(
        "poison message",
        bolt.id,
        f"bolt {bolt.id!r} is restarted for each exception, at most max_restarts={restarts} times within "
        f"restart_window: a message of spout {spout.id!r} that always raises crashes the topology before its "
        f"max_attempts={attempts} are over, and never becomes a dead letter",
        f"give bolt {bolt.id!r} max_restarts={attempts} or more, spout {spout.id!r} fewer max_attempts, or raise "
        "Reject for values that cannot be processed",
    )
