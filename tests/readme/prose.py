"""Prose that promises something, and the tests that keep the promises: their docstrings say the same, word for word."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Prose:
    """Markdown, and the folder with a module of tests for each of its sections."""

    text: str
    folder: Path
    prefix: str = "test_"
    """How the names of those tests begin whose docstrings count."""

    def sections(self) -> dict[str, str]:
        """Heading -> prose, without code, bullets, bold print and the heads of tables."""
        _, *parts = _HEADING.split(_CODE.sub("", self.text))
        found = zip(parts[::2], map(_words, parts[1::2]), strict=True)
        return {heading: prose for heading, prose in found if prose}

    def module_of(self, heading: str) -> Path:
        """It is named after the heading."""
        return self.folder / f"test_{re.sub(r'[^a-z]+', '_', heading.lower()).strip('_')}.py"

    def promises(self, heading: str) -> str:
        """What the docstrings of its tests say, one after another."""
        tree = ast.parse(self.module_of(heading).read_text("utf-8"))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        tests = [node for node in functions if node.name.startswith(self.prefix)]
        return " ".join(" ".join((ast.get_docstring(test) or "").split()) for test in tests)


def _words(section: str) -> str:
    tables = re.sub(r"^\|.*\|\n\| --- .*\n", "", section, flags=re.MULTILINE)
    rows = re.sub(r"^\| (.*) \| (.*) \|$", r"\1: \2", tables, flags=re.MULTILINE)
    return " ".join(re.sub(r"^- ", "", rows, flags=re.MULTILINE).replace("**", "").split())
