"""What ``from stormlet import …`` offers: each name once, documented, and nothing loaded that was not asked for."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import FunctionType, ModuleType

import pytest

import stormlet

EDGES = ["cli", "loading", "testing", "spark", "ui", "bench"]
STRANGERS = [
    "pyspark", "pyarrow", "numpy", "pandas", "uvloop", "pytest", "hypothesis", "cyclopts", "rich", "starlette",
    "asyncio", "ctypes", "email", "http", "importlib.metadata", "json", "multiprocessing", "pickle", "sqlite3",
    "tempfile", "tomllib", "unittest", "xml",
]  # fmt: skip


def public_modules() -> list[ModuleType]:
    """The modules that users import from, as far as they exist."""
    names = ["stormlet", "stormlet.testing", "stormlet.spark"]
    return [importlib.import_module(name) for name in names if importlib.util.find_spec(name)]


def exported() -> list[tuple[str, object]]:
    return [(name, getattr(module, name)) for module in public_modules() for name in module.__all__]


def documented_things(name: str, thing: object) -> Iterator[tuple[str, object]]:
    """An exported class with its public methods and properties, or an exported function."""
    if isinstance(thing, type | FunctionType):
        yield name, thing
    bases = (
        [each for each in inspect.getmro(thing) if each.__module__.startswith("stormlet.")]
        if isinstance(thing, type)
        else []
    )
    for member, value in (item for base in bases for item in vars(base).items()):
        if not member.startswith("_") and isinstance(
            value, FunctionType | property | classmethod | staticmethod
        ):
            yield f"{name}.{member}", getattr(thing, member)


def test_every_listed_name_exists() -> None:
    """Each name of ``__all__`` is an attribute of its module."""
    missing = [
        f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if not hasattr(module, name)
    ]
    assert missing == []


def test_every_name_is_exported_once() -> None:
    """No name is listed twice, neither in one module nor in two."""
    counts = Counter(name for module in public_modules() for name in module.__all__)
    assert [name for name, count in counts.items() if count > 1] == []


def test_one_thing_has_one_name() -> None:
    """No class or function is exported under two names."""
    counts = Counter(id(thing) for _, thing in exported() if isinstance(thing, type | FunctionType))
    assert [name for name, thing in exported() if counts[id(thing)] > 1] == []


def test_every_public_attribute_is_listed() -> None:
    """What ``stormlet`` has and does not hide by an underscore is listed in ``__all__``."""
    public = {
        name
        for name, thing in vars(stormlet).items()
        if not name.startswith("_") and name != "annotations" and not isinstance(thing, ModuleType)
    }
    assert sorted(public) == sorted(set(stormlet.__all__) - {"__version__"})


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_a_public_module_documents_itself(module: ModuleType) -> None:
    """Each module that users import from says what it is."""
    assert module.__doc__


@pytest.mark.parametrize(("name", "thing"), exported(), ids=[name for name, _ in exported()])
def test_an_exported_name_is_documented(name: str, thing: object) -> None:
    """An exported class or function has a docstring, and so has each of its public methods, its own or inherited."""
    assert [what for what, member in documented_things(name, thing) if not inspect.getdoc(member)] == []


def printed_by(code: str) -> list[str]:
    """The words that a fresh interpreter prints."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_importing_stormlet_loads_no_edge() -> None:
    """``import stormlet`` loads none of the edges and nothing heavy, so that embedding it costs little."""
    loaded = printed_by(
        "import sys; before = set(sys.modules); import stormlet; print(*set(sys.modules) - before)"
    )
    unwanted = {f"stormlet.{edge}" for edge in EDGES} | set(STRANGERS)
    assert unwanted & set(loaded) == set()


def test_what_needs_asyncio_is_loaded_when_it_is_asked_for() -> None:
    """Nobody can tell: it is there for ``dir``, for ``import`` and as an attribute, the same each time."""
    told = printed_by(
        "import stormlet; print({'Running', 'Tree', 'run'} <= set(dir(stormlet)));"
        "from stormlet import Running; print(stormlet.Running is Running, stormlet.run is stormlet.run)"
    )
    assert told == ["True", "True", "True"]


def test_a_first_run_imports_nothing() -> None:
    """It would hold the loop of a service: what it needs comes with asyncio, or with the first topology."""
    loaded = "'stormlet.runtime.run.handle' in sys.modules"
    assert printed_by(f"import sys, asyncio, stormlet; print({loaded})") == ["True"]
    assert printed_by(
        f"import sys, stormlet; print({loaded}); stormlet.Topology('words'); print({loaded})"
    ) == ["False", "True"]


def test_an_unknown_name_is_refused_as_by_any_module() -> None:
    """The words are Python's."""
    with pytest.raises(AttributeError, match=r"module 'stormlet' has no attribute 'spouts'"):
        _ = stormlet.spouts  # type: ignore[attr-defined]


def test_records_are_structs() -> None:
    """Records are ``msgspec.Struct``, as a dataclass takes forty times as long to define, in every import; only those
    are not that leave fields out of their comparison or ``repr``, which a struct cannot."""
    modules = [module for name, module in sys.modules.items() if is_inside(name)]
    classes = [thing for module in modules for thing in vars(module).values() if isinstance(thing, type)]
    ours = [each for each in classes if is_inside(each.__module__)]
    plain = [
        each for each in ours if is_dataclass(each) and all(one.compare and one.repr for one in fields(each))
    ]
    assert plain == []


def is_inside(module: str) -> bool:
    return module.startswith(("stormlet.core.", "stormlet.runtime."))
