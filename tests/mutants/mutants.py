"""Mutants: breakages of stormlet by name, and the tests that must notice them.

Each file ``<room>.toml`` beside this one describes the mutants of one part of the package. A mutant replaces one piece
of text, which must stand in its file exactly once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
"""The root of the repository."""
HERE = Path(__file__).parent

MEND = "see tests/mutants/README.md, which says how to mend it"


class Stale(Exception):
    """A mutant does not fit the code any more; the message says why, and how to mend it."""


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One breakage."""

    id: str
    breaks: str
    """A sentence that says what goes wrong."""
    file: str
    """The file to change, from the root of the repository."""
    old: str
    """Text that stands there exactly once."""
    new: str
    """The text in its place."""
    tests: tuple[str, ...]
    """Tests of which at least one must fail: files, or functions as ``file::function``, perhaps with the id of one of
    their cases in brackets."""
    slow: bool = False
    """True if its tests start processes or take more than a few seconds."""

    def applied(self, text: str) -> str:
        """Return the changed text of the file. Raises :class:`Stale` unless the old text stands there exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise Stale(f"{self.id}: {self.file} has its text {count} times instead of once; {MEND}")
        return text.replace(self.old, self.new)

    def check(self, root: Path = ROOT) -> None:
        """Raise :class:`Stale` unless its file, its text and its tests exist."""
        file = root / self.file
        if not file.is_file():
            raise Stale(f"{self.id}: there is no file {self.file}; {MEND}")
        self.applied(file.read_text(encoding="utf-8"))
        for test in self.tests:
            if not _exists(test, root):
                raise Stale(f"{self.id}: there is no test {test}; {MEND}")


class Room(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mutants of one part of the package."""

    mutant: tuple[Mutant, ...]


def rooms() -> dict[str, Sequence[Mutant]]:
    """Return all mutants, by room."""
    return {
        file.stem: msgspec.toml.decode(file.read_bytes(), type=Room).mutant
        for file in sorted(HERE.glob("*.toml"))
    }


def _exists(test: str, root: Path) -> bool:
    path, _, name = test.partition("[")[0].partition("::")
    if not name:
        return (root / path).exists()
    return (root / path).is_file() and name in _functions((root / path).read_text(encoding="utf-8"))


@lru_cache(maxsize=256)  # many mutants have their tests in one file
def _functions(text: str) -> frozenset[str]:
    return frozenset(_named(ast.parse(text).body))


def _named(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Iterate over the names of functions; those of a class come after its own: ``TestIt::test_that``."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from (f"{node.name}::{name}" for name in _named(node.body))
