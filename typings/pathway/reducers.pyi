from __future__ import annotations

from pathway import Expression

def count() -> Expression: ...
