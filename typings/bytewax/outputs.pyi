from __future__ import annotations

from typing import Generic, TypeVar

X = TypeVar("X")

class StatelessSinkPartition(Generic[X]):
    def write_batch(self, items: list[X]) -> None: ...

class DynamicSink(Generic[X]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSinkPartition[X]: ...
