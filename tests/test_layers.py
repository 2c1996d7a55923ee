"""Imports only go down, the core is pure, and there is no circle (a test holds this, or it is not true)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "stormlet"

# From the bottom to the top; the edges of one row do not know each other.
ROWS = [
    {"starting"},
    {"acceleration"},
    {"errors"},
    {"core"},
    {"report"},
    {"model"},
    {"files"},
    {"runtime", "state"},
    {"topology"},
    {"blocking", "connect", "drawing", "exports", "log_formatter"},
    {"__init__", "loading", "testing", "spark", "ui"},
    {"bench"},
    {"cli"},
    {"__main__"},
]
LEVELS = {layer: level for level, row in enumerate(ROWS) for layer in row}

# The rooms of a layer, likewise.
ROOMS = {
    "runtime": [
        {"epoch", "occupation", "other_threads"},
        {"failure_log", "slices", "tree", "usercode", "wire"},
        {"tracing"},
        {"context", "dead_letters", "life", "slow_code"},
        {"task"},
        {"acker", "bolt"},
        {"spout"},
        {"tasks"},
        {"slow_ends"},
        {"explain", "epochs", "hooks"},
        {"run"},
        {"__init__"},
    ],
    "spark": [
        {"failures"},
        {"destinations", "files", "frames", "session", "threads"},
        {"arrow"},
        {"sink", "source"},
        {"stream"},
        {"engine"},
        {"__init__"},
    ],
}
FLOORS = {
    layer: {room: floor for floor, rooms in enumerate(rows) for room in rooms}
    for layer, rows in ROOMS.items()
}
PURE = {"core", "report", "model"}

NOT_IN_CORE = {
    "asyncio", "concurrent.futures.thread", "logging", "multiprocessing", "os", "secrets", "select", "selectors",
    "signal", "socket", "subprocess", "threading", "time",
}  # fmt: skip
CLOCK_READINGS = {"now", "utcnow", "today"}


@dataclass(frozen=True)
class Import:
    """One import of one module by another, both by their dotted names."""

    importer: str
    imported: str
    line: int
    typing_only: bool


# --- reading a tree -------------------------------------------------------------------------------------------------


def read_modules(package: Path) -> dict[str, ast.Module]:
    """Dotted name -> syntax tree; a package goes by the name ``package.__init__``."""
    files = sorted(package.rglob("*.py"))
    return {
        ".".join(file.relative_to(package.parent).with_suffix("").parts): ast.parse(file.read_text("utf-8"))
        for file in files
    }


def imports_of(name: str, tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[Import]:
    """Every import statement of a module, those in functions too."""
    typing_only = {id(node) for block in typing_blocks(tree) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for imported in imported_by(node, modules):
                yield Import(name, imported, node.lineno, id(node) in typing_only)


def typing_blocks(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            yield from node.body


def imported_by(node: ast.Import | ast.ImportFrom, modules: Mapping[str, ast.Module]) -> list[str]:
    if isinstance(node, ast.Import):
        return [resolve(alias.name, modules) for alias in node.names]
    source = "." * node.level + (node.module or "")
    return sorted({resolve_member(source, alias.name, modules) for alias in node.names})


def resolve(name: str, modules: Mapping[str, ast.Module]) -> str:
    return f"{name}.__init__" if f"{name}.__init__" in modules else name


def resolve_member(source: str, member: str, modules: Mapping[str, ast.Module]) -> str:
    """``from a import b`` imports the module ``a.b`` if there is one, otherwise ``a``."""
    name = resolve(f"{source}.{member}", modules)
    return name if name in modules else resolve(source, modules)


# --- the rules ------------------------------------------------------------------------------------------------------


def violations(package: Path) -> list[str]:
    """Every breach of the rules below, in words."""
    modules = read_modules(package)
    imports = [one for name, tree in modules.items() for one in imports_of(name, tree, modules)]
    return [
        *homeless(modules),
        *(breach for one in imports for breach in breaches(one, package.name)),
        *(
            breach
            for name, tree in modules.items()
            if layer_of(name) in PURE
            for breach in impurities(name, tree)
        ),
        *circles(modules, imports),
    ]


def layer_of(name: str) -> str:
    """``stormlet.core.ids`` -> ``core``; ``stormlet.__init__`` -> ``__init__``."""
    return name.split(".")[1]


def room_of(name: str) -> str:
    """``stormlet.runtime.spout.task`` -> ``spout``; ``stormlet.runtime.task`` -> ``task``."""
    return name.split(".")[2]


def homeless(modules: Mapping[str, ast.Module]) -> Iterator[str]:
    for name in modules:
        layer = layer_of(name)
        if layer not in LEVELS:
            yield f"{name} belongs to no layer"
        elif layer in FLOORS and room_of(name) not in FLOORS[layer]:
            yield f"{name} belongs to no room of {layer}"


def breaches(one: Import, package: str) -> Iterator[str]:
    where = f"{one.importer}:{one.line}"
    if one.imported.startswith("."):
        yield f"{where} imports by a relative name"
    elif one.imported in {package, f"{package}.__init__"}:
        yield f"{where} imports {package} itself"
    elif one.imported.startswith(f"{package}.") and not points_down(one):
        yield f"{where} imports {one.imported}, which is not below it"
    elif layer_of(one.importer) in PURE and any(is_within(one.imported, banned) for banned in NOT_IN_CORE):
        yield f"{where} imports {one.imported} into {layer_of(one.importer)}, which is pure"


def points_down(one: Import) -> bool:
    importer, imported = layer_of(one.importer), layer_of(one.imported)
    if importer == imported:
        return importer not in FLOORS or points_down_in(FLOORS[importer], one)
    return LEVELS.get(importer, 0) > LEVELS.get(imported, len(ROWS))


def points_down_in(floors: Mapping[str, int], one: Import) -> bool:
    importer, imported = room_of(one.importer), room_of(one.imported)
    return importer == imported or floors.get(importer, 0) > floors.get(imported, len(floors))


def is_within(module: str, parent: str) -> bool:
    return module == parent or module.startswith(f"{parent}.")


def impurities(name: str, tree: ast.Module) -> Iterator[str]:
    """Randomness without a seed, and the clock of ``datetime`` (law L16)."""
    aliases = {alias.asname or alias.name for alias in names_imported("random", tree)}
    shared = "random" if has_shared_random(tree) else ""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="random") if any(alias.name != "Random" for alias in node.names):
                yield f"{name}:{node.lineno} takes more than Random from random"
            case ast.Attribute(value=ast.Name(owner), attr=attribute) if (
                owner == shared and attribute != "Random"
            ):
                yield f"{name}:{node.lineno} uses the shared random.{attribute}"
            case ast.Call(func=ast.Attribute(value=ast.Name("random"), attr="Random"), args=[], keywords=[]):
                yield f"{name}:{node.lineno} makes a Random without a seed"
            case ast.Call(func=ast.Name(function), args=[], keywords=[]) if function in aliases:
                yield f"{name}:{node.lineno} makes a Random without a seed"
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in CLOCK_READINGS:
                yield f"{name}:{node.lineno} reads the clock by {attribute}()"
            case ast.Import() if any(alias.name == "random" and alias.asname for alias in node.names):
                yield f"{name}:{node.lineno} hides random behind another name"
            case _:
                pass


def has_shared_random(tree: ast.Module) -> bool:
    """Whether ``random`` is the module here, rather than an instance that somebody handed in."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    return any(alias.name == "random" for node in imports for alias in node.names)


def names_imported(module: str, tree: ast.Module) -> Iterator[ast.alias]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == module:
            yield from node.names


# --- circles: strongly connected components, after Tarjan -----------------------------------------------------------


def circles(modules: Mapping[str, ast.Module], imports: list[Import]) -> list[str]:
    graph: dict[str, list[str]] = {name: [] for name in modules}
    for one in imports:
        if one.imported in modules:
            graph[one.importer].append(one.imported)
    groups = strongly_connected(graph)
    return [f"a circle: {', '.join(sorted(group))}" for group in groups if len(group) > 1]


def strongly_connected(graph: Mapping[str, list[str]]) -> list[list[str]]:
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for successor in graph[node]:
            if successor not in order:
                visit(successor)
            if successor in stack:
                lowest[node] = min(lowest[node], lowest[successor])
        if lowest[node] == order[node]:
            place = stack.index(node)
            groups.append(stack[place:])
            del stack[place:]

    for node in graph:
        if node not in order:
            visit(node)
    return groups


# --- the tests ------------------------------------------------------------------------------------------------------


def test_stormlet_keeps_its_layers() -> None:
    """No module of stormlet imports upwards, sideways between edges, in a circle, or impurely in the core."""
    assert violations(PACKAGE) == []


@pytest.mark.parametrize("layer", ["core", "model"])
def test_what_users_declare_knows_no_bridge(layer: str) -> None:
    """Neither the law nor the model names Spark, its data, or an option of its sources and sinks."""
    bridge = re.compile(r"spark|dataframe|checkpoint=|exactly_once|epoch_rows", re.IGNORECASE)
    named = [
        f"{file.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for file in sorted((PACKAGE / layer).glob("*.p*"))
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if bridge.search(line)
    ]
    assert named == []


def tree_of(root: Path, files: Mapping[str, str]) -> Path:
    package = root / "stormlet"
    for name, text in {"__init__.py": "", "core/__init__.py": "", **files}.items():
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return package


GOOD = {
    "__init__.py": "from stormlet.topology import Topology",
    "errors.py": "",
    "core/outcomes.py": "from enum import Enum\nfrom stormlet.errors import StormletError",
    "core/keys.py": "from stormlet.errors import Oops",
    "core/ids.py": "from random import Random\nimport random\ndef new(r: random.Random) -> Random: return Random(1)",
    "model/plan.py": "from stormlet.core import ids\nimport datetime",
    "runtime/run/handle.py": "import asyncio\nfrom stormlet.model.plan import TaskPlan",
    "topology.py": "from stormlet.runtime.run.handle import Running",
    "cli/run.py": "from stormlet.loading import load",
    "loading.py": "from stormlet.topology import Topology",
}


def test_a_tree_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    """A package whose imports only go down has no violations."""
    assert violations(tree_of(tmp_path, GOOD)) == []


@pytest.mark.parametrize(
    ("file", "text", "breach"),
    [
        (
            "core/bad.py",
            "import stormlet.runtime.run.handle",
            "imports stormlet.runtime.run.handle, which is not below it",
        ),
        (
            "core/bad.py",
            "def f():\n    from stormlet.runtime.run.handle import Running",
            "which is not below it",
        ),
        ("core/bad.py", "if TYPE_CHECKING:\n    from stormlet.topology import T", "which is not below it"),
        ("errors.py", "from stormlet.model.plan import Plan", "which is not below it"),
        ("errors.py", "from stormlet.core.ids import new", "which is not below it"),
        ("testing/bad.py", "from stormlet.loading import load", "which is not below it"),
        ("runtime/run/bad.py", "from stormlet import Topology", "imports stormlet itself"),
        ("report/bad.py", "from stormlet.model.plan import Plan", "which is not below it"),
        ("model/bad.py", "import asyncio", "imports asyncio into model, which is pure"),
        ("runtime/bad.py", "", "stormlet.runtime.bad belongs to no room of runtime"),
        ("spark/bad.py", "", "stormlet.spark.bad belongs to no room of spark"),
        ("spark/arrow/bad.py", "from stormlet.spark.source import reader", "which is not below it"),
        (
            "spark/source/bad.py",
            "if TYPE_CHECKING:\n    from stormlet.spark.stream import reader",
            "not below it",
        ),
        ("runtime/wire/bad.py", "from stormlet.runtime.run.handle import Running", "which is not below it"),
        (
            "runtime/bolt/bad.py",
            "if TYPE_CHECKING:\n    from stormlet.runtime.acker import task",
            "not below it",
        ),
        ("cli/bad.py", "import stormlet", "imports stormlet itself"),
        ("runtime/run/bad.py", "from . import handle", "imports by a relative name"),
        ("extra.py", "", "stormlet.extra belongs to no layer"),
        ("core/bad.py", "import asyncio", "imports asyncio into core, which is pure"),
        (
            "core/bad.py",
            "from asyncio.events import TimerHandle",
            "imports asyncio.events into core, which is pure",
        ),
        ("core/bad.py", "import time", "imports time into core, which is pure"),
        ("core/bad.py", "from logging import getLogger", "imports logging into core, which is pure"),
        ("core/bad.py", "import threading", "imports threading into core, which is pure"),
        ("core/bad.py", "import socket", "imports socket into core, which is pure"),
        ("core/bad.py", "import random\nrandom.random()", "uses the shared random.random"),
        ("core/bad.py", "from random import choice", "takes more than Random from random"),
        ("core/bad.py", "import random as r\nr.random()", "hides random behind another name"),
        ("core/bad.py", "import random\nrandom.Random()", "makes a Random without a seed"),
        ("core/bad.py", "from random import Random as R\nR()", "makes a Random without a seed"),
        ("core/bad.py", "import datetime\ndatetime.datetime.now()", "reads the clock by now()"),
    ],
)
def test_a_breach_is_named(tmp_path: Path, file: str, text: str, breach: str) -> None:
    """Each single breach of a rule is reported, and nothing else is."""
    (found,) = violations(tree_of(tmp_path, {**GOOD, file: text}))
    assert breach in found


def test_a_circle_is_named(tmp_path: Path) -> None:
    """Modules that import each other are reported together, whichever function the import hides in."""
    circle = {
        "core/a.py": "from stormlet.core import b",
        "core/b.py": "def f():\n    import stormlet.core.c",
        "core/c.py": "from stormlet.core.a import x",
    }
    assert violations(tree_of(tmp_path, GOOD | circle)) == [
        "a circle: stormlet.core.a, stormlet.core.b, stormlet.core.c"
    ]


def test_imports_for_the_type_checker_make_a_circle_too(tmp_path: Path) -> None:
    """An import under TYPE_CHECKING closes a circle, as a reader goes in it."""
    pair = {
        "core/a.py": "from stormlet.core import b",
        "core/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from stormlet.core.a import x",
    }
    assert violations(tree_of(tmp_path, GOOD | pair)) == ["a circle: stormlet.core.a, stormlet.core.b"]
