"""A tracked message is a Python object like others, whether it is laid out by C or not."""

from __future__ import annotations

import gc
import sys

import pytest

from stormlet import is_compiled
from stormlet.connect.driver.held import Held
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.trees import OpenTree, new_tree
from stormlet.core.tuples import PLAIN
from stormlet.runtime.spout.messages import (
    GivenUp,
    HostMessage,
    Message,
    SpoutMessage,
    kept_message,
    spout_message,
)
from stormlet.runtime.tree import Tree

FIELDS = ("root", "checksum", "spout", "message_id", "failure")
KEPT = (*FIELDS, "value", "stream", "task", "lineage", "history")


def host_message() -> HostMessage:
    return HostMessage("cow", "default", PLAIN, tree=Tree(tracked=True), max_attempts=1, collected=None)


def test_the_short_way_makes_the_same() -> None:
    """As the constructor does, field by field."""
    for field in FIELDS:
        assert getattr(new_tree("m"), field) == getattr(OpenTree(message_id="m"), field)
    for field in KEPT:
        made = Message("cow", "words", 4, PLAIN, message_id="m")
        for make in (kept_message, spout_message):
            assert getattr(make("cow", "words", 4, PLAIN, "m"), field) == getattr(made, field)
    assert type(spout_message("cow", "words", 4, PLAIN, "m")) is SpoutMessage


@pytest.mark.parametrize(
    "tree",
    [
        new_tree("m"),
        GivenUp(message_id="m", failure=Failure(FailureKind.FAILED)),
        kept_message("cow", "words", None, PLAIN, "m"),
        spout_message("cow", "words", None, PLAIN, "m"),
        host_message(),
        Held("m", None, None, -1, 0.0, b"cow", None, 1, 3, None, ""),
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_the_collector_is_spared_all_kinds(tree: OpenTree | Held) -> None:
    """Compiled, it looks into none of them: millions may be open."""
    assert gc.is_tracked(tree) is not is_compiled()


def test_the_highest_checksum_fits() -> None:
    """Ids have 64 bits."""
    tree = new_tree(None)
    tree.checksum = 2**64 - 1
    assert tree.checksum == 2**64 - 1


@pytest.mark.skipif(not is_compiled(), reason="the memory of the compiled build")
def test_a_tree_is_small() -> None:
    """Its root and its checksum are no objects of their own."""
    assert sys.getsizeof(new_tree(7)) <= 56
