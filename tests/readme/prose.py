"""Prose that promises something, and the tests that keep its promises: a comment at each promise names them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

ANCHOR = re.compile(r"<!-- tested by: (.*?) -->", re.DOTALL)
_MARKDOWN = MarkdownIt().enable("table")
_BLOCKS = {"paragraph_open", "tr_open", "html_block"}


@dataclass(frozen=True)
class Promise:
    """A paragraph, a list item or a row of a table."""

    text: str
    tests: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Prose:
    """Markdown, and the folder of its tests."""

    text: str
    folder: Path

    def promises(self) -> list[Promise]:
        """All that it says, in order; headings, code and the heads of tables promise nothing."""
        found: list[Promise] = []
        for text, opens in self._blocks():
            if opens:
                found.append(Promise(text))
            for names in ANCHOR.findall(text):
                found[-1].tests.extend(names.replace(",", " ").split())
        return found

    def _blocks(self) -> Iterator[tuple[str, bool]]:
        """The source of each promise, True; and that of each comment with a line of its own, False."""
        tokens, lines = _MARKDOWN.parse(self.text), self.text.splitlines()
        heads = {token.map[0] for token in tokens if token.type == "thead_open" and token.map}
        for token in tokens:
            if token.type in _BLOCKS and token.map and token.map[0] not in heads:
                yield "\n".join(lines[slice(*token.map)]), token.type != "html_block"

    def tests(self) -> list[str]:
        """The names of all tests in the folder."""
        trees = [ast.parse(path.read_text("utf-8")) for path in sorted(self.folder.glob("test_*.py"))]
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        names = [node.name for tree in trees for node in tree.body if isinstance(node, functions)]
        return [name for name in names if name.startswith("test_")]
