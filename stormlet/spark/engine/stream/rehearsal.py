"""A rehearsal before a stream starts: each bolt is made once, as each epoch will make it, to see if it can be saved.

Else the first epoch would find out, on an executor, and again as often as the stream is restarted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from stormlet.errors import InvalidTopology
from stormlet.model.components import BoltBase
from stormlet.model.description import BoltSpec, Description
from stormlet.spark.engine.partition.states import attributes, has_own_state
from stormlet.spark.engine.planning.arguments import can_be_saved
from stormlet.spark.engine.planning.layout import may_have_state


def rehearse(description: Description) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for bolts that are made with what cannot be saved."""
    found = [each for bolt in description.bolts.values() if may_have_state(bolt) for each in _unsaved(bolt)]
    if found:
        raise InvalidTopology("\n".join(f"on Spark, {each}" for each in found))


def _unsaved(bolt: BoltSpec) -> Iterator[str]:
    made = _made(bolt)
    if not isinstance(made, BoltBase) or has_own_state(made):
        return
    for name, value in attributes(made).items():
        if not can_be_saved(value):
            yield (
                f"the constructor of bolt {bolt.id!r} makes {name!r}, and a stream cannot save that, as a "
                f"{type(value).__name__} with what is in it cannot be pickled; make it in prepare if it is no state, "
                "or define __getstate__"
            )


def _made(bolt: BoltSpec) -> BoltBase[Any, Any] | None:
    """An instance, if it can be made on this machine: an executor may have what its constructor needs."""
    try:
        made: BoltBase[Any, Any] = cast("Any", bolt.logic)()
    except (Exception, SystemExit):
        return None
    return made
