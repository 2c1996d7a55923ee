from __future__ import annotations

from typing import Generic, TypeVar

X = TypeVar("X")

class StatelessSourcePartition(Generic[X]):
    def next_batch(self) -> list[X]: ...

class DynamicSource(Generic[X]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSourcePartition[X]: ...
