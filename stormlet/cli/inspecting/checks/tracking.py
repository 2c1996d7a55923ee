"""Messages that nobody tracks, inputs that nobody settles, and outputs that leave their trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stormlet.cli.inspecting.anchoring import Code, code_of, is_untied
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.model.components import Bolt
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind, component_class

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
    """Whether the spout may emit tracked messages to the stream (law L10)."""
    return not is_untied(component_class(spout.source), stream, "message_id")


def anchors(bolt: BoltSpec, stream: str) -> bool:
    """Whether what the bolt emits to the stream may be anchored (laws L8, B1)."""
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
    """What is emitted without anchors leaves the tree (law L8); ``anchors=()`` says that it is meant."""
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
    """Whether it anchors and acks by itself (law B2)."""
    return cls is not None and issubclass(cls, Bolt)
