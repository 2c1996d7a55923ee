"""Explains in the log, once each, messages whose trees have been open for long, all attempts together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import msgspec

from stormlet.core.outcomes import spelt
from stormlet.core.trees import OpenTree
from stormlet.report.explanation import Explanation
from stormlet.report.failures import log_fields
from stormlet.runtime.explain.explainer import UNRECORDED, Explainer
from stormlet.runtime.spout.messages import Message

logger = logging.getLogger(__name__)

LOOKS: Final = 4
"""Looks per ``explain_stuck`` seconds: by a part of these, a tree may be older than it was first seen."""
WATCHED: Final = 1000
"""The number of trees looked at for new ones at a time: those that time out first."""
AT_ONCE: Final = 3
"""The number of trees explained at one look; the others are counted."""
IN_ALL: Final = 50
"""The number of trees explained in one run."""


class Seen(msgspec.Struct):
    """The memory of a message in all its attempts; a message that a ``Spout`` class keeps by itself is another one
    in each."""

    since: float
    """The time at which it was first seen."""
    root: int
    attempt_since: float
    """The time at which its running attempt was first seen."""
    explained: bool = False

    def attempted(self, root: int, now: float) -> None:
        """It is open under this root."""
        if root != self.root:
            self.root, self.attempt_since = root, now


class StuckTrees:
    """Watches the trees of one run. The ledger has no times, so it remembers which trees it has seen, and when."""

    def __init__(self, topology: str, explainer: Explainer, seconds: float, timeout: float | None) -> None:
        self._topology = topology
        self._explainer = explainer
        self._seconds = seconds
        self._timeout = timeout
        self._enough = seconds * 0.999  # as the sum of the pauses may fall short by a rounding
        self._seen: dict[OpenTree, Seen] = {}
        self._explained = 0

    async def watch(self) -> None:
        """Look again and again."""
        loop = asyncio.get_running_loop()
        # Said once and at the start: otherwise the option would seem to do nothing.
        if self._timeout is not None and self._seconds >= self._timeout:
            self._warn(self._timeout)
        while True:
            await asyncio.sleep(self._seconds / LOOKS)
            try:
                self._look(loop.time())
            except Exception:  # it must not end with the first tree that cannot be explained
                logger.exception("what keeps trees of topology %r open cannot be explained", self._topology)

    def _warn(self, timeout: float) -> None:
        self._log(
            f"explain_stuck={self._seconds:g} is not below message_timeout={timeout:g}: a tree times out before it is "
            "explained, unless it is one of the later attempts at a message that the engine replays"
        )

    def _look(self, now: float) -> None:
        # Anew at each look, so that nothing is kept of a message that has its outcome.
        self._seen = dict(self._still_there(now))
        for root, tree in islice(self._explainer.open_trees(), WATCHED):
            # It began before that, by a fourth of the time at most.
            self._seen.setdefault(tree, Seen(now, root, now)).attempted(root, now)
        stuck = {seen.root: tree for tree, seen in self._seen.items() if self._is_news(tree, seen, now)}
        if stuck:
            self._explain(stuck, now)

    def _still_there(self, now: float) -> Iterator[tuple[OpenTree, Seen]]:
        """Those that have no final outcome, whether they are among the watched ones or not."""
        # A message that is replayed again and again is open for as long as all of its attempts.
        waiting = frozenset(self._explainer.between_attempts())
        for tree, seen in self._seen.items():
            root = tree.root if isinstance(tree, Message) else seen.root
            if self._explainer.is_open(root, tree):
                seen.attempted(root, now)
                yield tree, seen
            elif tree in waiting:
                yield tree, seen

    def _is_news(self, tree: OpenTree, seen: Seen, now: float) -> bool:
        is_old = now - seen.since >= self._enough and not seen.explained
        return is_old and self._explainer.is_open(seen.root, tree)

    def _explain(self, stuck: Mapping[int, OpenTree], now: float) -> None:
        for tree in stuck.values():
            self._seen[tree].explained = True
        # When all is stuck, thousands of trees are: the first ones say why, and the others how bad it is.
        most = min(AT_ONCE, IN_ALL - self._explained)
        explained = self._explainer.of_trees(dict(islice(stuck.items(), most)))
        for tree, each in zip(stuck.values(), explained, strict=False):  # of the first ones
            text = str(self._aged(self._shortly(each), self._seen[tree], now))
            self._log(text, each.spout, each.message_id)
            self._explained += 1
        if len(stuck) > most:
            self._log(f"{_trees(len(stuck) - most)} open for at least {spelt(self._seconds)}")

    def _aged(self, explanation: Explanation, seen: Seen, now: float) -> Explanation:
        """With the time since its attempt was first seen, unless a recorder knows better, and since the first attempt
        was."""
        # The time since it was first seen is short by what passed before.
        seconds = explanation.seconds if explanation.exact else now - seen.attempt_since
        since_first = now - seen.since if seen.since < seen.attempt_since else None
        return msgspec.structs.replace(explanation, seconds=seconds, all_seconds=since_first)

    def _shortly(self, explanation: Explanation) -> Explanation:
        """Without the advice that the first one has given."""
        is_advice = explanation.note == UNRECORDED and self._explained
        return msgspec.structs.replace(explanation, note="") if is_advice else explanation

    def _log(self, text: str, spout: str | None = None, message_id: object = None) -> None:
        logger.warning("%s", text, extra=log_fields(self._topology, spout, None, message_id))


def _trees(count: int) -> str:
    return "one more tree is" if count == 1 else f"{count:,} more trees are"
