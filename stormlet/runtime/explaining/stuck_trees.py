"""Explains in the log, once each, trees that have been open for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from stormlet.core.explanation import Explanation
from stormlet.core.ledger import OpenTree
from stormlet.core.log_fields import log_fields
from stormlet.core.outstanding import spelt
from stormlet.runtime.explaining.explainer import UNRECORDED, Explainer

logger = logging.getLogger(__name__)

LOOKS: Final = 4
"""Looks per ``explain_stuck`` seconds: by a part of these, a tree may be older than it was first seen."""
WATCHED: Final = 1000
"""How many trees are watched at a time: those that time out first."""
AT_ONCE: Final = 3
"""How many are explained at one look; the others are counted."""
IN_ALL: Final = 50
"""How many are explained in one run."""


class StuckTrees:
    """Watches the trees of one run. The ledger has no times, so it remembers which trees it has seen, and when."""

    def __init__(self, topology: str, explainer: Explainer, seconds: float) -> None:
        self._topology = topology
        self._explainer = explainer
        self._seconds = seconds
        self._enough = seconds * 0.999  # as the sum of the pauses may fall short by a rounding
        self._seen: dict[int, float] = {}
        self._told: dict[int, None] = {}
        self._explained = 0

    async def watch(self) -> None:
        """Look again and again."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._seconds / LOOKS)
            self._look(loop.time())

    def _look(self, now: float) -> None:
        trees = dict(islice(self._explainer.open_trees(), WATCHED))
        self._seen = {root: self._seen.get(root, now) for root in trees}
        self._told = {root: None for root in self._told if root in trees}
        stuck = {root: tree for root, tree in trees.items() if self._is_news(root, now)}
        if stuck:
            self._told.update(dict.fromkeys(stuck))
            self._tell(stuck, now)

    def _is_news(self, root: int, now: float) -> bool:
        return now - self._seen[root] >= self._enough and root not in self._told

    def _tell(self, stuck: Mapping[int, OpenTree], now: float) -> None:
        most = min(AT_ONCE, IN_ALL - self._explained)
        explained = self._explainer.of_trees(dict(islice(stuck.items(), most)))
        for each in explained:
            self._log(str(self._shortly(self._aged(each, now))), each.spout, each.message_id)
            self._explained += 1
        if len(stuck) > most:
            self._log(f"{_trees(len(stuck) - most)} open for at least {spelt(self._seconds)}")

    def _aged(self, explanation: Explanation, now: float) -> Explanation:
        """With the time since it was first seen, unless a recorder knows better."""
        if explanation.exact or explanation.root is None:
            return explanation
        return replace(explanation, seconds=now - self._seen[explanation.root])

    def _shortly(self, explanation: Explanation) -> Explanation:
        """Without the advice that the first one has given."""
        is_advice = explanation.note == UNRECORDED and self._explained
        return replace(explanation, note="") if is_advice else explanation

    def _log(self, text: str, spout: str | None = None, message_id: object = None) -> None:
        logger.warning("%s", text, extra=log_fields(self._topology, spout, None, message_id))


def _trees(count: int) -> str:
    return "one more tree is" if count == 1 else f"{count:,} more trees are"
