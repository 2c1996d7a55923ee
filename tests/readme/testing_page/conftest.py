"""What the tests of the page share."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.testing.outsiders import impatient
from tests.testing.plugin_runs import inner

__all__ = ["impatient", "inner", "orders"]

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text("utf-8")


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The page's first block, as the module that it is."""
    block = re.search(r"^```python\n(# orders.py\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    (tmp_path / "orders.py").write_text(block[1], "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "orders", raising=False)
    module = importlib.import_module("orders")
    monkeypatch.delitem(sys.modules, "orders")
    return module
