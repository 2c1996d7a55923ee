"""The hot modules run compiled or interpreted, as they were built and as the environment says."""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import stormlet
from stormlet import Bolt, Collector, Topology, Tuple
from stormlet.acceleration import VARIABLE, how_it_runs
from tests.helpers import run_to_end

PACKAGE = Path(stormlet.__file__).parent
DECLARED = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.pxd")
)
EXTENSION = EXTENSION_SUFFIXES[0]
BUILT = any(PACKAGE.rglob(f"*{EXTENSION}"))
FILES = (
    "import sys, stormlet.cli, stormlet.connect.driver.spout, stormlet.runtime.run.handle; "
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


def test_no_declaration_says_what_cython_calls_things() -> None:
    """Its names have the path of the module in them, and are its own affair."""
    assert not [path for path in PACKAGE.rglob("*.pxd") if "__pyx" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.pxd")), ids=lambda path: path.stem)
def test_what_the_collector_is_to_spare_says_so_in_its_module_too(path: Path) -> None:
    """The directive has no effect in a declaration alone."""
    module = path.with_suffix(".py").read_text("utf-8")
    for name in re.findall(r"@cython\.no_gc\ncdef class (\w+)", path.read_text("utf-8")):
        assert re.search(rf"@cython\.no_gc\n(@.*\n)*class {name}\b", module), name


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
    assert "is not compiled; install it anew, with a C compiler: STORMLET_COMPILED=1 pip" in failed.stderr


def test_anything_else_is_refused() -> None:
    """A word that is no setting is not taken for one."""
    failed = run_with("yes")
    assert "STORMLET_COMPILED='yes' is neither 0 (interpreted) nor 1 (compiled)" in failed.stderr


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """This package with extensions that cannot be loaded: whoever uses one fails."""
    package = tmp_path / "stormlet"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", f"*{EXTENSION}"))
    for name in DECLARED:
        (tmp_path / f"{name.replace('.', '/')}{EXTENSION}").touch()
    return package


@pytest.fixture
def checkout(built: Path) -> Path:
    """The same in its own project."""
    built.with_name("pyproject.toml").write_text('[project]\nname = "stormlet"\n')
    return built


IMPORTED = "import stormlet; print(stormlet.__file__, stormlet.is_compiled())"


def import_from(package: Path, setting: str, code: str = IMPORTED) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=package.parent,
        env={**os.environ, VARIABLE: setting, "PYTHONPATH": str(package.parent)},
    )


@pytest.mark.parametrize("project", [None, '[project]\nname = "vendors-grains"\n'])
def test_what_is_installed_runs_compiled(built: Path, project: str | None) -> None:
    """In site-packages, and where a project keeps the libraries it needs beside its own files."""
    if project is not None:
        built.with_name("pyproject.toml").write_text(project)
    assert EXTENSION in import_from(built, "").stderr


@pytest.mark.parametrize("setting", ["", "0"])
def test_an_edit_in_a_checkout_has_effect(checkout: Path, setting: str) -> None:
    """The files that can be read run there, whatever the dates of the extensions beside them."""
    done = import_from(checkout, setting)
    assert (done.stdout.split(), done.stderr) == ([str(checkout / "__init__.py"), "False"], "")


def test_0_passes_over_what_is_compiled(built: Path) -> None:
    """The interpreted files of a compiled installation run."""
    done = import_from(built, "0")
    assert (done.stdout.split(), done.stderr) == ([str(built / "__init__.py"), "False"], "")


HOW = "from stormlet.acceleration import how_it_runs; print(how_it_runs())"


def test_what_is_compiled_says_so() -> None:
    """And nothing else."""
    assert (how_it_runs() == "compiled") is stormlet.is_compiled()


def test_what_is_interpreted_says_why(checkout: Path) -> None:
    """As it was asked for, as a checkout is, or as there was no compiler; then how to find out more."""
    assert import_from(checkout, "0", HOW).stdout == "interpreted, as STORMLET_COMPILED=0 asks for\n"
    assert import_from(checkout, "", HOW).stdout == "interpreted, as a checkout always is\n"
    checkout.with_name("pyproject.toml").unlink()
    for extension in checkout.rglob(f"*{EXTENSION}"):
        extension.unlink()
    shown = import_from(checkout, "", HOW).stdout
    assert shown.startswith("interpreted, as no C extensions were built when it was installed: ")
    assert "'STORMLET_COMPILED=1 pip install --no-cache-dir --force-reinstall --no-deps stormlet'" in shown


def test_1_insists_in_a_checkout(checkout: Path) -> None:
    """Which never runs compiled: the error says what does."""
    done = import_from(checkout, "1")
    assert done.returncode == 1
    assert f"STORMLET_COMPILED=1, but {checkout.parent} is a checkout, which is not compiled" in done.stderr
    assert f"STORMLET_COMPILED=1 pip install {checkout.parent}" in done.stderr


def test_0_leaves_the_modules_of_others_alone() -> None:
    """No finder of ours stands before Python's own."""
    code = "import sys; before = list(sys.meta_path); import stormlet; print(sys.meta_path == before)"
    assert run_with("0", code).stdout.strip() == "True"


@pytest.mark.skipif(not (PACKAGE.parent / "setup.py").exists(), reason="that is where it was built")
def test_an_editable_installation_is_never_compiled() -> None:
    """Its extensions would hide every later change."""
    pytest.importorskip("setuptools")
    refused = subprocess.run(
        [sys.executable, "setup.py", "editable_wheel"],
        capture_output=True,
        text=True,
        check=False,
        cwd=PACKAGE.parent,
        env={**os.environ, VARIABLE: "1"},
    )
    assert refused.returncode == 1
    assert "an editable installation is interpreted: leave -e out" in refused.stderr


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
