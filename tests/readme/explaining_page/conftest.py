"""What the tests of the page share."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "explaining.md").read_text("utf-8")


def module(name: str, there: Path) -> ModuleType:
    """A block of the page, as the file that it is."""
    block = re.search(rf"^```python\n(# {name}\.py\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    path = there / f"{name}.py"
    path.write_text(block[1], "utf-8")
    spec = importlib.util.spec_from_file_location(f"{name}_on_the_page", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def orders(tmp_path: Path) -> ModuleType:
    """The first block."""
    return module("orders", tmp_path)


@pytest.fixture
def operations(tmp_path: Path) -> ModuleType:
    """The last one."""
    return module("operations", tmp_path)
