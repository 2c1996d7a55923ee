from __future__ import annotations

from typing import Generic, TypeVar

X = TypeVar("X")
S = TypeVar("S")

class StatelessSourcePartition(Generic[X]):
    def next_batch(self) -> list[X]: ...

class DynamicSource(Generic[X]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSourcePartition[X]: ...

class StatefulSourcePartition(Generic[X, S]):
    def next_batch(self) -> list[X]: ...
    def snapshot(self) -> S: ...

class FixedPartitionedSource(Generic[X, S]):
    def list_parts(self) -> list[str]: ...
    def build_part(
        self, step_id: str, for_part: str, resume_state: S | None
    ) -> StatefulSourcePartition[X, S]: ...
