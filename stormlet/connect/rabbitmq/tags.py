"""The delivery tags of a channel, each settled once.

A channel numbers its deliveries from 1 on. One acknowledgement may settle all up to a tag, which costs the broker far
less than one for each. It says so of messages that are under way, too: so it may go only as far as all are settled. A
tag that is settled twice closes the channel, and all that it holds is delivered again.
"""

from __future__ import annotations

from collections.abc import Iterable


class Tags:
    """The tags of one channel."""

    def __init__(self) -> None:
        self.delivered = 0
        """The last tag that has come."""
        self._front = 0
        self._beyond = set[int]()

    @property
    def open(self) -> int:
        """Deliveries that are not settled."""
        return self.delivered - self._front - len(self._beyond)

    def settle(self, tags: Iterable[int]) -> list[int]:
        """Note that these are settled; return those that were not yet."""
        fresh = [tag for tag in dict.fromkeys(tags) if tag > self._front and tag not in self._beyond]
        self._beyond.update(fresh)
        while self._front + 1 in self._beyond:
            self._front += 1
            self._beyond.remove(self._front)
        return fresh

    def acknowledgements(self, fresh: Iterable[int]) -> list[tuple[int, bool]]:
        """Return the fewest acknowledgements that settle these, each with True if it is for all up to it.

        All others that are settled must be known to the broker before.
        """
        up_to = max((tag for tag in fresh if tag <= self._front), default=0)
        alone = [(tag, False) for tag in fresh if tag > self._front]
        # The last tag must be one that is not settled: RabbitMQ closes the channel otherwise.
        return [(up_to, True), *alone] if up_to else alone
