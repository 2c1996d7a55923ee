"""The partitions of a task where the positions are in the state of the topology.

No group gives partitions and takes them away then: each belongs to one task for good, so that its position is in one
place. Which task that is does not depend on other topics, nor on partitions that come later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition


class Share(msgspec.Struct, frozen=True):
    """One task of several, and the names of the last messages that were emitted, by partition."""

    task_index: int
    parallelism: int
    resume: Mapping[str, str]

    def of(self, partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
        """Return those of the task, with the offsets at which they begin."""
        from confluent_kafka import TopicPartition

        return [
            TopicPartition(topic, number, self._begin(f"{topic}[{number}]"))
            for topic, number in partitions
            if (crc32(topic.encode()) + number) % self.parallelism == self.task_index
        ]

    def _begin(self, name: str) -> int:
        from confluent_kafka import OFFSET_BEGINNING

        last = self.resume.get(name)
        return OFFSET_BEGINNING if last is None else int(last.rpartition("@")[2]) + 1
