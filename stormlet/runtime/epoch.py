"""The open epoch, as all tasks of a run share it (law X1 to X7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormlet.core.state.epochs import Attempt, EpochAccount


class OpenEpoch:
    """The epoch that messages belong to which are emitted now. Trackers append messages, tell it of failures, and ask
    it for room; tasks with state note in its attempt what has reached state."""

    __slots__ = ("abandoned", "account", "attempt", "closing", "happened", "is_large", "messages", "own")

    def __init__(self, account: EpochAccount[Any], is_large: Callable[[], bool] = bool) -> None:
        """``is_large`` says if it has changed so much that it takes nothing more from the sources."""
        self.account = account
        self.is_large = is_large
        self.messages = account.messages
        """The messages of the open epoch: its account's list, to which trackers append."""
        self.attempt = Attempt()
        self.closing = False
        """True once the sources shall give nothing more to it."""
        self.abandoned = False
        """True once the run is cut short: nothing of it is committed or tried again."""
        self.own = 0
        """Open trees that belong to the epoch itself, and to no message (law X5)."""
        self.happened: Callable[[], None] = _nobody
        """Called when it begins or is spoilt; its keeper puts its own method here."""

    @property
    def room(self) -> int:
        """The number of messages that it still takes from the sources."""
        if self.closing or self.account.is_broken_off:
            return 0
        room = self.account.room
        return 0 if room > 0 and self.is_large() else room

    @property
    def spoilt(self) -> bool:
        """True if the attempt has failed."""
        return self.account.spoilt

    def failed(self, message: Any, root: int, *, given_up: bool) -> bool:
        """A message has failed, for good if it was ``given_up``. Returns True if it has reached no state, and may be
        emitted again alone (law X6)."""
        attempt, account = self.attempt, self.account
        attempt.bury(root)
        if given_up:
            account.give_up(message)
        if not attempt.has_reached(root):
            return not given_up and not account.spoilt
        if given_up:
            account.spoil_by_given_up()
        else:
            account.spoil(message)
            self.happened()
        return False

    def spoil(self) -> None:
        """Something has failed that belongs to no message."""
        self.account.spoil_by_itself()
        self.happened()

    def begin_own(self) -> None:
        """A tree begins that belongs to the epoch itself."""
        self.own += 1
        self.happened()

    def abandon(self) -> None:
        """The run is cut short."""
        self.abandoned = self.closing = True


def _nobody() -> None:
    """Take the notice before the keeper is made; nothing is emitted by then."""
