"""One tracked message, as an acker knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormlet.core.directives import is_extension
from stormlet.core.outcomes import Failure

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
class OpenTree:
    """One tracked message: its checksum, who waits for the verdict, and the verdict in the end.

    Compiled, the garbage collector does not look into it: open trees were most of what it looked at. A cycle through
    one is broken by its verdict, and every end of a run gives all of them (law C3); only a loop that is closed in the
    middle of a run gives none, and leaks it. User code never gets hold of one.
    """

    __slots__ = ("checksum", "failure", "message_id", "spout")

    def __init__(
        self,
        *,
        message_id: object = None,
        checksum: int = 0,
        spout: int = 0,
        failure: Failure | None = None,
    ) -> None:
        self.checksum = checksum
        self.spout = spout
        """The index of the spout task that gets the verdict."""
        self.message_id = message_id
        """How that task knows the message."""
        self.failure: Failure | None = failure
        """Why it failed, once it has."""


def open_tree(message_id: object) -> OpenTree:
    """The tree of a message that is emitted now. The same as calling the class, at a fraction of the price."""
    tree = OpenTree.__new__(OpenTree)
    tree.checksum = 0
    tree.spout = 0
    tree.message_id = message_id
    tree.failure = None
    return tree
