"""Outputs that belong to no message, where they must be written."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.anchoring import code_of
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.cli.inspecting.checks.upstream import upstream
from stormlet.model.description import BoltSpec, Description
from stormlet.model.logic import component_class, says


def unowned_outputs(description: Description) -> Iterator[Finding]:
    """What ``finish`` and ``tick`` emit is tracked by nobody (laws B5, C2): where a sink that lives by acks fails on
    it, nothing is replayed, and nobody is told unless the sink stops the topology."""
    for bolt in description.bolts.values():
        if bolt.on_error == "stop" or not says(bolt.logic, "needs_acks"):
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
