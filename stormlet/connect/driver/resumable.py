"""The spout of a source that a topology with ``state=`` may have."""

from __future__ import annotations

import re
from typing import TypeVar

from stormlet.connect.driver.spout import SourceSpout

T = TypeVar("T")


class ResumableSpout(SourceSpout[T]):
    """A spout whose messages are named ``place@position``, in the order of their places, so that the state can keep its
    positions (law X8)."""

    resumable = True

    def partition(self, message_id: object) -> str:
        """The place in the name."""
        return str(message_id).rpartition("@")[0]

    def position_of(self, message_id: object) -> str:
        """The name alone: ids of later connections have more."""
        place, _, position = str(message_id).rpartition("@")
        return f"{place}@{re.split('[~+]', position)[0]}"
