"""The file or module of a target: found and run, with what it raises as errors of the target."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from types import ModuleType

from stormlet.core.shortened import printable
from stormlet.errors import StormletError, TargetError

MOST_NAMES = 10
"""Most names that a message lists."""


def load_file(place: str) -> ModuleType:
    """Run a Python file as a module of its own."""
    path = _readable_file(place)
    sys.path.insert(0, str(path.parent))
    with suppress(FileNotFoundError):  # the current directory was removed
        sys.path.append(str(Path.cwd()))
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with blaming(f"{place} cannot be loaded"):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _readable_file(place: str) -> Path:
    with _reading(place):
        path = Path(place).resolve()
        if path.is_file():
            path.open("rb").close()
            return path
        raise TargetError(_no_file(place, path))


@contextmanager
def _reading(place: str) -> Generator[None]:
    """Turn an error of the file system into a TargetError."""
    try:
        yield
    except OSError as error:
        raise TargetError(f"{place} cannot be read: {error.strerror}") from None
    except RuntimeError as error:  # a loop of symbolic links, until Python 3.13
        raise TargetError(f"{place} cannot be read: {error}") from None


def _module_name(path: Path) -> str:
    """The file's own name, so that its classes find their module again, unless that would hide another
    module."""
    stem = path.stem.replace(".", "_")
    loaded = sys.modules.get(stem)
    taken = loaded is not None and getattr(loaded, "__file__", None) != str(path)
    return f"topology_file_{stem}" if taken or stem in sys.stdlib_module_names else stem


def load_module(place: str) -> ModuleType:
    """Import a module by its dotted name."""
    with _reading(place):
        if not all(part.isidentifier() for part in place.split(".")) or _is_no_module(Path(place)):
            raise TargetError(_no_module(place))
        sys.path.insert(0, str(Path.cwd()))
    with blaming(f"{place} cannot be loaded"):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{place}.".startswith(f"{error.name}."):
                raise  # a module that the user's module wants
    raise TargetError(
        f"there is no module {place!r} to import from {Path.cwd()}; for a file, write its path: …/name.py"
    )


def _is_no_module(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and not (path / "__init__.py").is_file())


@contextmanager
def blaming(what: str) -> Generator[None]:
    """Turn an exception of the user's code into a TargetError; stormlet's own already name the way out."""
    try:
        yield
    except (StormletError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise TargetError(f"{what}: {_in_words(error)}{_way_out(error)}") from error


def _way_out(error: BaseException) -> str:
    if isinstance(error, ImportError) and "no known parent package" in str(error):
        return "; a file alone is in no package: write package.module:name, from the directory that has the package"
    return ""


def _in_words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "its str() failed"
    return printable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _no_file(place: str, path: Path) -> str:
    if path.is_dir():
        return _no_module(place)
    if not path.parent.is_dir():
        return f"there is no directory {str(path.parent)!r}, where {place} should be"
    return f"there is no file {place!r}" + suggestion(path.name, _python_files(path.parent))


def _no_module(place: str) -> str:
    path = Path(place)
    if path.is_dir():
        return f"{place!r} is a directory; name a Python file in it" + suggestion("", _python_files(path))
    if path.exists() or path.with_name(f"{path.name}.py").exists():
        return f"{place!r} is no Python file: its name must end in .py"
    return f"{place!r} is neither a Python file (…/name.py) nor the name of a module (package.module:name)"


def _python_files(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.glob("*.py") if file.is_file())


def suggestion(wrong: str, known: Collection[str]) -> str:
    """Return the nearest name in words, or the first of all names."""
    near = get_close_matches(wrong, known)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; there are: {listed(known)}" if known else ""


def listed(names: Collection[str]) -> str:
    """Return the first of these names, and the number of the others."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(islice(names, MOST_NAMES))}{more}"
