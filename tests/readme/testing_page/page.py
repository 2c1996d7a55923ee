"""The page, section by section: its prose, without headings, code, bullets and the heads of tables."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "testing.md").read_text("utf-8")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)\n", re.MULTILINE)


def sections() -> dict[str, str]:
    """Heading -> prose."""
    _, *parts = _HEADING.split(_CODE.sub("", PAGE))
    return {heading: _prose(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def _prose(section: str) -> str:
    tables = re.sub(r"^\|.*\|\n\| --- .*\n", "", section, flags=re.MULTILINE)
    rows = re.sub(r"^\| (.*) \| (.*) \|$", r"\1: \2", tables, flags=re.MULTILINE)
    return " ".join(re.sub(r"^- ", "", rows, flags=re.MULTILINE).split())


def module_of(heading: str) -> Path:
    """The tests of a section are in a module that is named after its heading."""
    return HERE / f"test_{re.sub(r'[^a-z]+', '_', heading.lower()).strip('_')}.py"


def promises(heading: str) -> str:
    """What the docstrings of these tests say, one after another."""
    tree = ast.parse(module_of(heading).read_text("utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    tests = [node for node in functions if node.name.startswith("test_")]
    return " ".join(" ".join((ast.get_docstring(test) or "").split()) for test in tests)
