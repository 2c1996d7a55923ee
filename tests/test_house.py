"""How tests are written here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stormlet import errors
from stormlet.acceleration import VARIABLE as COMPILED
from stormlet.cli.parameters import VARIABLES
from stormlet.core import outcomes

TESTS = Path(__file__).parent


def find_tests(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def test_every_test_says_what_it_shows() -> None:
    """Each test has a docstring of one sentence or so: what holds, in words."""
    silent = [
        f"{file.relative_to(TESTS)}:{test.lineno} {test.name}"
        for file in sorted(TESTS.rglob("test_*.py"))
        for test in find_tests(file)
        if not ast.get_docstring(test)
    ]
    assert silent == []


def test_every_name_is_the_same_in_each_run(request: pytest.FixtureRequest) -> None:
    """No test of this run is called by the address of an object, which runners in several processes cannot agree on."""
    assert [item.nodeid for item in request.session.items if " at 0x" in item.nodeid] == []


def test_no_variable_of_the_tests_is_taken_for_an_option() -> None:
    """``stormlet run`` refuses an unknown ``STORMLET_…``, also where a developer has exported it for the tests."""
    read = re.compile(r"""environ(?:\.get\(|\[)"(STORMLET_\w+)""")
    named = {name for file in TESTS.rglob("*.py") for name in read.findall(file.read_text("utf-8"))}
    assert named <= {*VARIABLES, COMPILED}


PACKAGE = TESTS.parent / "stormlet"
ROOMS = [
    ".",
    "core",
    "report",
    "model",
    "runtime",
    "spark",
    "state",
    "testing",
    "bench",
    "cli",
    "drawing",
    "ui",
]
"""The folders of the package; "." has the top-level modules."""
QUESTION = re.compile(r"(What|Whether|Who|Whoever|Whose|Where|Wherever|Why|How|Which|Whatever)\b")


def find_docstrings(file: Path) -> Iterator[ast.Constant]:
    """The docstrings of a module, of its classes and functions, and those below its attributes."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value


@pytest.mark.parametrize("room", ROOMS)
def test_no_docstring_opens_with_a_question_word(room: str) -> None:
    """A docstring opens with a noun phrase or an imperative, not with an indirect question."""
    questions = [
        f"{file.relative_to(PACKAGE)}:{docstring.lineno} {text.splitlines()[0]}"
        for file in sorted((PACKAGE / room).glob("*.py"))
        for docstring in find_docstrings(file)
        if QUESTION.match(text := str(docstring.value).strip())
    ]
    assert questions == []


def test_the_drawn_tree_of_errors_is_the_real_one() -> None:
    """Every error stands in the docstring of ``stormlet.errors`` below its base; only those that users raise do not."""
    drawn, path = dict[str, str](), ["StormletError"]
    for found in re.finditer(r"^( +[│ ]*)[├└]── (\w+)", str(errors.__doc__), re.MULTILINE):
        path = [*path[: len(found[1]) // 4], found[2]]
        drawn[found[2]] = path[-2]
    things = {**vars(outcomes), **vars(errors)}
    real = {name: thing.__base__.__name__ for name, thing in things.items() if is_error(thing)}
    assert drawn.items() <= real.items()
    assert real.keys() - drawn.keys() == {"StormletError", "EndOfStream", "Reject"}


def is_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, errors.StormletError)
