from __future__ import annotations

from typing import Generic, TypeVar

X_co = TypeVar("X_co", covariant=True)

class Dataflow:
    def __init__(self, flow_id: str) -> None: ...

class Stream(Generic[X_co]): ...
