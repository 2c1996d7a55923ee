"""The number of messages that a source may still ask its broker for (law R5)."""

from __future__ import annotations

import msgspec

UNLIMITED = 10_000
"""Messages that are asked for at once where ``max_spout_pending`` is unlimited."""


class Credit(msgspec.Struct, frozen=True):
    """Bounds of what a source task holds: messages that are pending or buffered, and bytes that are buffered."""

    most: int | None
    """``max_spout_pending``; None: unlimited."""
    most_bytes: int
    """Bytes of buffered messages. The last message may go beyond."""

    def left(self, pending: int, buffered: int, buffered_bytes: int) -> int:
        """Return the number of messages that may be asked for."""
        if buffered_bytes >= self.most_bytes:
            return 0
        return max(0, (UNLIMITED if self.most is None else self.most - pending) - buffered)
