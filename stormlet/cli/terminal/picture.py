"""The last values that the page has told, put together from what has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]
"""The numbers of one component or task, by their names."""


class Picture:
    """The values of one page."""

    def __init__(self, component: str = "") -> None:
        """``component`` is the one whose tasks and failures it has; empty for none."""
        self.opened = component
        self.revision = ""
        self._values: dict[str, Any] = {}
        self._rows: dict[str, Row] = {}

    def __bool__(self) -> bool:
        """Return True once anything was told."""
        return bool(self._values)

    def take(self, change: Mapping[str, Any]) -> None:
        """Lay an answer over what was known."""
        if change["whole"]:
            self._values, self._rows = {}, {}
        for name in change["gone"]:
            self._values.pop(name, None)
            self._rows.pop(name, None)
        self._values.update(change["values"])
        columns = self._values["columns"]["components"]
        for name, value in change["values"].items():
            if name.startswith(("c/", "t/")):
                self._rows[name] = dict(zip(columns, value, strict=False))
        self.revision = change["revision"]

    def get(self, name: str, otherwise: Any = None) -> Any:
        """Return a value."""
        return self._values.get(name, otherwise)

    def rows(self, kind: str) -> Iterator[Row]:
        """Return the numbers of components (``c/``) or tasks (``t/``), in their order."""
        return (row for name, row in self._rows.items() if name.startswith(kind))

    def component(self, id: str) -> Row | None:
        """Return the numbers of a component."""
        return self._rows.get(f"c/{id}")

    def edge(self, id: str) -> Row:
        """Return the numbers of a subscription."""
        return dict(zip(self._values["columns"]["edges"], self._values.get(f"e/{id}", ()), strict=False))
