"""The hot modules run compiled or interpreted, as they were built and as the environment says."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import stormlet
from stormlet import Bolt, Collector, Topology, Tuple
from stormlet.acceleration import VARIABLE, find_stale
from tests.helpers import run_to_end

PACKAGE = Path(stormlet.__file__).parent
DECLARED = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.pxd")
)
EXTENSION = EXTENSION_SUFFIXES[0]
BUILT = any(PACKAGE.rglob(f"*{EXTENSION}"))
FILES = (
    "import sys, stormlet.cli, stormlet.runtime.run.handle; "
    "print(*(sys.modules[name].__file__ for name in sys.argv[1:]))"
)


def run_with(setting: str, code: str = FILES) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *DECLARED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, VARIABLE: setting},
    )


def test_every_declaration_belongs_to_a_module() -> None:
    """A file of C types without its module would never be used, and nobody would know."""
    assert DECLARED
    assert all((PACKAGE.parent / f"{name.replace('.', '/')}.py").exists() for name in DECLARED)


def test_0_runs_what_can_be_read() -> None:
    """The interpreted files run, whether there are compiled ones or not."""
    shown = run_with("0").stdout.split()
    assert [Path(file).suffix for file in shown] == [".py"] * len(DECLARED)


@pytest.mark.skipif(not BUILT, reason="nothing is compiled here")
def test_1_runs_what_is_compiled() -> None:
    """All of it, not a part."""
    suffixes = [Path(file).suffix for file in run_with("1").stdout.split()]
    assert len(suffixes) == len(DECLARED)
    assert ".py" not in suffixes


@pytest.mark.skipif(BUILT, reason="everything is compiled here")
def test_1_insists() -> None:
    """An import that would silently run slow files fails and says what to do."""
    failed = run_with("1")
    assert failed.returncode == 1
    assert "STORMLET_COMPILED=1, but this installation is not compiled; install it anew" in failed.stderr


def test_anything_else_is_refused() -> None:
    """A word that is no setting is not taken for one."""
    failed = run_with("yes")
    assert "STORMLET_COMPILED='yes' is neither 0 (interpreted) nor 1 (compiled)" in failed.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package in its project, with one module that was compiled after it was written."""
    package = tmp_path / "grains"
    (package / "core").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "grains"\n')
    write(package / "core/oats.py", 1.0)
    write(package / "core/oats.pxd", 2.0)
    write(package / f"core/oats{EXTENSION}", 3.0)
    write(package / "core/never_compiled.py", 4.0)
    return package


def write(path: Path, date: float) -> None:
    path.touch()
    os.utime(path, (date, date))


def test_what_was_compiled_last_is_not_stale(checkout: Path) -> None:
    """Modules that are never compiled may change as they like."""
    assert find_stale(checkout) is None


@pytest.mark.parametrize("suffix", [".py", ".pxd"])
def test_what_changed_after_it_was_compiled_is_stale(checkout: Path, suffix: str) -> None:
    """The module and its declarations both go into what is compiled."""
    write(checkout / f"core/oats{suffix}", 5.0)
    assert find_stale(checkout) == checkout / "core/oats.py"


def test_what_was_not_compiled_with_the_others_is_stale(checkout: Path) -> None:
    """Such as a module that came with the last pull."""
    write(checkout / "rye.py", 1.0)
    write(checkout / "rye.pxd", 1.0)
    assert find_stale(checkout) == checkout / "rye.py"


def test_what_is_compiled_no_longer_is_stale(checkout: Path) -> None:
    """Its extension would hide the module for ever."""
    write(checkout / f"rye{EXTENSION}", 6.0)
    assert find_stale(checkout) == checkout / "rye.py"


def test_a_checkout_that_is_not_compiled_is_not_stale(checkout: Path) -> None:
    """Declarations alone promise nothing."""
    (checkout / f"core/oats{EXTENSION}").unlink()
    assert find_stale(checkout) is None


@pytest.mark.parametrize("project", [None, '[project]\nname = "vendors-grains"\n'])
def test_dates_of_an_installation_say_nothing(checkout: Path, project: str | None) -> None:
    """Neither in site-packages nor where a project keeps the libraries it needs beside its own files."""
    write(checkout / "core/oats.py", 5.0)
    checkout.with_name("pyproject.toml").unlink()
    if project is not None:
        checkout.with_name("pyproject.toml").write_text(project)
    assert find_stale(checkout) is None


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """This package in a checkout, with extensions from before its last edit: they are not even extensions."""
    package = tmp_path / "stormlet"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", f"*{EXTENSION}"))
    (tmp_path / "pyproject.toml").write_text('name = "stormlet"')
    for name in DECLARED:
        write(tmp_path / f"{name.replace('.', '/')}{EXTENSION}", 1.0)
    return package


def import_from(package: Path, setting: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import stormlet; print(stormlet.__file__, stormlet.is_compiled())"],
        capture_output=True,
        text=True,
        check=False,
        cwd=package.parent,
        env={**os.environ, VARIABLE: setting, "PYTHONPATH": str(package.parent)},
    )


def test_an_edit_has_effect(edited: Path) -> None:
    """The interpreted files run, and a warning says why and what to do."""
    done = import_from(edited, "")
    assert done.stdout.split() == [str(edited / "__init__.py"), "False"]
    assert "RuntimeWarning: the compiled modules do not match" in done.stderr
    assert f"compile anew: STORMLET_COMPILED=1 pip install -e {edited.parent}" in done.stderr


def test_1_insists_after_an_edit(edited: Path) -> None:
    """What was compiled before it is not what was asked for."""
    done = import_from(edited, "1")
    assert done.returncode == 1
    assert "ImportError: STORMLET_COMPILED=1, but the compiled modules do not match" in done.stderr


def test_0_does_not_mind_an_edit(edited: Path) -> None:
    """The interpreted files run anyway."""
    done = import_from(edited, "0")
    assert (done.stdout.split(), done.stderr) == ([str(edited / "__init__.py"), "False"], "")


def test_bytecode_alone_is_interpreted(tmp_path: Path) -> None:
    """As frozen applications have it, without the files that can be read."""
    package = tmp_path / "stormlet"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", f"*{EXTENSION}"))
    assert compileall.compile_dir(package, quiet=1, legacy=True)
    for source in package.rglob("*.py"):
        source.unlink()
    done = import_from(package, "")
    assert (done.stdout.split(), done.stderr) == ([str(package / "__init__.pyc"), "False"], "")


@pytest.mark.simulated_time
@pytest.mark.parametrize("verb", ["ack", "fail"])
async def test_none_is_no_tuple(verb: str) -> None:
    """Settling what is not there raises in the bolt, compiled or not, and harms nothing else."""
    raised: list[str] = []

    class Careless(Bolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            try:
                getattr(out, verb)(None)
            except AttributeError as error:
                raised.append(str(error))
            out.ack(tup)

    topology = Topology("careless")
    topology.bolt("careless", Careless, topology.spout("numbers", range(2)).shuffle())
    running = await run_to_end(topology)
    assert len(raised) == 2
    assert running.statistics().components["numbers"].acked == 2
