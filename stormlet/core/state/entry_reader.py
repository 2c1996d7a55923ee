"""The way from the blobs of a state back to its entries (law K5)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from stormlet.core.shortened import shortened
from stormlet.core.state.codecs import NIL, Values, optional, reader, timed
from stormlet.core.state.commits import StateId
from stormlet.core.state.tables import Declared
from stormlet.core.state.value_table import without_value
from stormlet.errors import StateUnusable


class EntryReader:
    """Reads the blobs of one state as it is declared."""

    def __init__(self, id: StateId, declared: Declared, values: Values) -> None:
        self._id = id
        self._shape = declared.shape
        self._ways = ", convert it with upgrade=," if declared.kind == "value" else ","
        self._values = values
        self._timed = declared.ttl is not None
        self._is_plain = values.immutable and values.upgrade is None
        """True if values are kept as they are decoded."""
        value: Any = values.kind if self._is_plain else msgspec.Raw
        self.decode = reader(declared.entry, self._in_blob(value))
        """Decodes one blob. Raises :class:`msgspec.DecodeError` for one that is not as it is declared."""

    def _in_blob(self, value: Any) -> Any:
        if self._timed:
            return optional(timed(value))
        return optional(value) if self._is_plain else value

    def kept(self, entries: dict[Any, Any]) -> dict[Any, Any]:
        """Return the kept forms of decoded entries, without those that are deleted; where there is a ``ttl``, with
        their times. What is given may be changed by that. Raise what :meth:`Values.read` raises."""
        read = self._values.read
        if self._is_plain:
            for entry in without_value(entries):
                del entries[entry]
            return entries
        if not self._timed:
            return {entry: read(raw) for entry, raw in entries.items() if bytes(raw) != NIL}
        living = ((entry, pair) for entry, pair in entries.items() if pair is not None)
        return {entry: (written, read(raw)) for entry, (written, raw) in living}

    def unreadable(self, error: Exception) -> StateUnusable:
        """Return the error for what is not as it is declared."""
        why = error if isinstance(error, DECODES) else f"its class raised {shortened(error)}"
        return StateUnusable(
            f"state {self._id} does not decode as {self._shape.value} by {self._shape.key}: {why}; declare it as it "
            f"was{self._ways} or remove it with `stormlet state forget`"
        )


DECODES: Final = (msgspec.DecodeError, ValueError, TypeError)
"""What decoding raises by itself."""
UNFIT: Final = Exception
"""What is raised for an entry that is not as it is declared: also by its class, in a ``__post_init__``."""
