"""The open epoch, as all tasks of a run share it (law X1 to X8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from stormlet.core.outcomes import Failure
from stormlet.core.state.epochs import Attempt, EpochAccount

UNLIMITED: Final = 1 << 60


class CutEpoch:
    """An epoch that a source has cut: all that it emits from now on until :meth:`end` is done as a whole (law X8).

    It is a :class:`~stormlet.model.components.SourceEpoch`.
    """

    def __init__(self, spout: int, number: int, line: str, changed: Callable[[], None]) -> None:
        """``spout`` is the number of its task; ``changed`` is called when it has ended or is given back."""
        self.spout = spout
        self.number = number
        self.line = line
        self.ended = False
        """True once the source has emitted all of it."""
        self.returned: Failure | None = None
        """The failure for which the source has it back, if it has."""
        self.blamed: object = None
        """The id of the message that has failed, if there is one."""
        self._told: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()
        self._changed = changed

    @property
    def is_open(self) -> bool:
        """True while the source emits."""
        return not self.ended and self.returned is None

    def end(self) -> None:
        """See :meth:`stormlet.model.components.SourceEpoch.end`."""
        self.ended = True
        self._changed()

    def give_back(self, failure: Failure, blamed: object = None) -> None:
        """See :meth:`stormlet.model.components.SourceEpoch.give_back`."""
        if self.returned is None and not self.is_told:
            self.returned, self.blamed = failure, blamed
            self._changed()

    def tell(self, failure: Failure | None) -> None:
        """Tell the source that it is durable, or why it is not."""
        if not self.is_told:
            self._told.set_result(failure)

    @property
    def is_told(self) -> bool:
        """See :attr:`stormlet.model.components.SourceEpoch.is_told`."""
        return self._told.done()

    async def told(self) -> Failure | None:
        """See :meth:`stormlet.model.components.SourceEpoch.told`."""
        return await asyncio.shield(self._told)


class OpenEpoch:
    """The epoch that messages belong to which are emitted now. Trackers append messages, tell it of failures, and ask
    it for room; tasks with state note in its attempt what has reached state."""

    __slots__ = (
        "abandoned",
        "account",
        "attempt",
        "closing",
        "cut",
        "cut_changed",
        "happened",
        "is_large",
        "messages",
        "own",
    )

    def __init__(self, account: EpochAccount[Any], is_large: Callable[[], bool] = bool) -> None:
        """``is_large`` says if it has changed so much that it takes nothing more from the sources."""
        self.account = account
        self.is_large = is_large
        self.messages = account.messages
        """The messages of the open epoch: its account's list, to which trackers append."""
        self.attempt = Attempt()
        self.closing = False
        """True once the sources shall give nothing more to it, but one that has cut it and is not at its end."""
        self.abandoned = False
        """True once the run is cut short: nothing of it is committed or tried again."""
        self.own = 0
        """Open trees that belong to the epoch itself, and to no message (law X5)."""
        self.cut: CutEpoch | None = None
        """The part of it that a source has cut, if one has."""
        self.happened: Callable[[], None] = _nobody
        """Called when it begins or is spoilt; its keeper puts its own method here."""
        self.cut_changed: Callable[[], None] = _nobody
        """Called when a source has ended what it has cut, or gets it back; likewise."""

    @property
    def room(self) -> int:
        """The number of messages that it still takes from the sources."""
        if self.closing or self.account.is_broken_off:
            return 0
        room = self.account.room
        return 0 if room > 0 and self.is_large() else room

    def room_for(self, spout: int) -> int:
        """The number of messages that it still takes from this task: any, until the task has ended what it has cut."""
        cut = self.cut
        if cut is None or cut.spout != spout:
            return self.room
        return UNLIMITED if cut.is_open else 0

    @property
    def spoilt(self) -> bool:
        """True if the attempt has failed."""
        return self.account.spoilt

    def begin_cut(self, spout: int, number: int, line: str) -> CutEpoch:
        """A source begins what it has cut: it is part of the open epoch, as a whole."""
        if self.cut is not None:
            raise RuntimeError(
                f"epoch {self.cut.number} of {self.cut.line} was begun and not told; wait for that"
            )
        self.cut = CutEpoch(spout, number, line, self._cut_changed)
        self.account.is_whole = True
        return self.cut

    def _cut_changed(self) -> None:
        self.closing = True
        self.cut_changed()

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
