from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from pathway import io as io
from pathway import reducers as reducers

class Expression: ...

class This:
    data: Expression
    word: Expression

class Schema: ...

class Grouped:
    def reduce(self, *columns: Expression, **named: Expression) -> Table: ...

class Table:
    def select(self, **columns: Expression) -> Table: ...
    def flatten(self, column: Expression) -> Table: ...
    def groupby(self, *columns: Expression) -> Grouped: ...

class MonitoringLevel(Enum):
    NONE = 0

this: This

def apply_with_type(function: Callable[[str], object], kind: object, *columns: Expression) -> Expression: ...
def run(*, monitoring_level: MonitoringLevel) -> None: ...
