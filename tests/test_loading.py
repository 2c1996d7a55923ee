"""A TARGET leads to a topology, or to one message that says what exists instead."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from textwrap import dedent

import pytest

from stormlet.errors import InvalidTopology, TargetError
from stormlet.loading import load_topology
from stormlet.topology import Topology


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs in a directory of its own."""
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("from stormlet import Topology\n" + dedent(text), "utf-8")
    return path.resolve()


def refusal(target: str, **arguments: str) -> str:
    with pytest.raises(TargetError) as caught:
        load_topology(target, arguments)
    return str(caught.value)


# --- what is found ---


def test_the_only_topology_of_a_file_needs_no_name() -> None:
    """``topology.py`` is the one topology in that file, whatever it is called."""
    write("topology.py", "counting = Topology('count')")
    assert load_topology("topology.py", {}).name == "count"


def test_two_names_of_one_topology_are_one_topology() -> None:
    """A topology that a file calls by two names is still the only one."""
    write("topology.py", "main = alias = Topology('count')")
    assert load_topology("topology.py", {}).name == "count"


def test_a_name_chooses_a_topology() -> None:
    """``topology.py:name`` is what the file calls so."""
    write("topology.py", "a = Topology('first')\nb = Topology('second')")
    assert load_topology("topology.py:b", {}).name == "second"


def test_a_private_topology_is_found_by_its_name_alone() -> None:
    """A leading underscore hides a topology from the search, and not from its name."""
    write("topology.py", "_draft = Topology('draft')\nfinal = Topology('final')")
    assert load_topology("topology.py", {}).name == "final"
    assert load_topology("topology.py:_draft", {}).name == "draft"


@pytest.mark.parametrize("annotation", ["Topology", "'Topology'", "'stormlet.Topology'"])
def test_the_only_function_annotated_to_return_a_topology_needs_no_name(annotation: str) -> None:
    """Without a topology in the file, the one function that says it returns one is called."""
    write(
        "topology.py",
        f"""
        def helper(): ...
        def build() -> {annotation}:
            return Topology('built')
        """,
    )
    assert load_topology("topology.py", {}).name == "built"


def test_a_named_function_needs_no_annotation() -> None:
    """A function that is named is called, whatever it says of itself."""
    write("topology.py", "def build():\n    return Topology('built')")
    assert load_topology("topology.py:build", {}).name == "built"


def test_an_imported_function_is_not_the_files_own() -> None:
    """A function that the file only imports does not compete with its own."""
    write("other.py", "def borrowed() -> Topology: ...")
    write("topology.py", "from other import borrowed\ndef build() -> Topology:\n    return Topology('built')")
    assert load_topology("topology.py", {}).name == "built"


@pytest.mark.parametrize("target", ["pack.flows:main", "pack.flows"])
def test_a_module_is_imported_from_the_current_directory(target: str) -> None:
    """``package.module:name`` is looked for where the command runs."""
    write("pack/flows.py", "main = Topology('packed')")
    assert load_topology(target, {}).name == "packed"


def test_a_package_with_the_name_of_its_directory_is_a_module() -> None:
    """``package:name`` imports the package, though a directory of that name stands there."""
    write("pack/__init__.py", "main = Topology('package')")
    assert load_topology("pack:main", {}).name == "package"


def test_the_files_beside_it_can_be_imported_then_and_later() -> None:
    """The directory of the file stays at the front of ``sys.path``."""
    write("flows/words.py", "NAME = 'helped'")
    path = write("flows/topology.py", "from words import NAME\nmain = Topology(NAME)")
    assert load_topology("flows/topology.py", {}).name == "helped"
    assert sys.path[0] == str(path.parent)


def test_a_file_imports_from_the_current_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console script, for which Python adds no directory, finds there what ``python -m`` does."""
    write("flows/parts.py", "lines = [1, 2]")
    write("flows/topology.py", "from flows.parts import lines\na = Topology(f'of {len(lines)}')")
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each and Path(each) != Path.cwd()])
    assert load_topology("flows/topology.py", {}).name == "of 2"


def test_a_files_classes_know_their_module() -> None:
    """The module is registered under the file's name, where annotations and pickles look for it."""
    write("flow.py", "class Word: ...\nmain = Topology(Word.__module__)")
    assert load_topology("flow.py", {}).name == "flow"
    assert sys.modules["flow"].Word.__name__ == "Word"


@pytest.mark.parametrize("name", ["queue", "stormlet"])
def test_a_file_hides_no_module_of_the_same_name(name: str) -> None:
    """A file called like a module of Python's, or like a loaded one, does not take that module's place."""
    write(f"{name}.py", "main = Topology('mine')")
    before = sys.modules.get(name)
    assert load_topology(f"{name}.py", {}).name == "mine"
    assert sys.modules.get(name) is before


# --- arguments ---

PARAMETERS = """
    from enum import Enum
    from pathlib import Path
    class Mode(Enum):
        FAST = "fast"
    def build(bare='', *, text: str = '', number: int = 0, share: float = 0, flag: bool = False,
              path: Path = Path(), maybe: int | None = 3, place: Path | None = None, mode: Mode | None = None,
              ) -> Topology:
        return Topology(repr([bare, text, number, share, flag, path, maybe, place, mode]))
"""


@pytest.mark.parametrize("lazily", ["", "from __future__ import annotations\n"])
def test_arguments_become_what_the_annotations_say(lazily: str) -> None:
    """Each ``--arg`` is converted by its parameter's annotation; a parameter without one takes text."""
    Path("topology.py").write_text(lazily + "from stormlet import Topology\n" + dedent(PARAMETERS))
    texts = {
        "bare": "1", "text": "2", "number": "3", "share": "4", "flag": "true",
        "path": "a/b", "maybe": "null", "place": "c", "mode": "fast",
    }  # fmt: skip
    given = load_topology("topology.py", texts).name
    assert given == repr(["1", "2", 3, 4.0, True, Path("a/b"), None, Path("c"), ...]).replace(
        "Ellipsis", "<Mode.FAST: 'fast'>"
    )


def test_a_parameter_left_out_keeps_its_default() -> None:
    """Only the given arguments are passed."""
    write("topology.py", "def build(number: int = 7) -> Topology:\n    return Topology(str(number))")
    assert load_topology("topology.py", {}).name == "7"


def test_a_missing_argument_is_asked_for() -> None:
    """A parameter without a default must be given, and the message shows how."""
    write("topology.py", "def build(path: str, limit: int, depth=1) -> Topology: ...")
    assert refusal("topology.py", limit="1") == "topology.py:build needs --arg path=…"
    assert refusal("topology.py") == "topology.py:build needs --arg path=… --arg limit=…"


def test_an_unknown_argument_meets_the_nearest_name() -> None:
    """An ``--arg`` that no parameter is called is refused with the nearest, or all, that there are."""
    write("topology.py", "def build(path: str = '', limit: int = 1) -> Topology: ...")
    assert refusal("topology.py", pth="x") == "topology.py:build has no parameter 'pth'; did you mean path?"
    assert refusal("topology.py", z="x") == "topology.py:build has no parameter 'z'; there are: path, limit"


@pytest.mark.parametrize(
    ("annotation", "text", "why"),
    [
        ("int", "many", "many is no int"),
        ("int", "1.5", "1.5 is no int"),
        ("list[int]", "1,2", "only single values can be given on a command line"),
        ("bool", "yes", "build(x: bool): write true or false"),
        ("'bool | None'", "yes", "write true or false"),
        ("'int | None'", "none", "none is neither int nor null"),
        ("complex", "1j", "complex cannot be given on a command line"),
        ("'Path | int'", "1", "not supported"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(annotation: str, text: str, why: str) -> None:
    """The refusal names the argument, its parameter and what was expected."""
    write("topology.py", f"from pathlib import Path\ndef build(x: {annotation}) -> Topology: ...")
    message = refusal("topology.py", x=text)
    assert message.startswith(f"--arg x={text} does not fit topology.py:build(x: ")
    assert why in message


def test_a_file_that_imports_relatively_is_to_be_named_as_a_module() -> None:
    """A file alone is in no package."""
    write("topology.py", "from . import others")
    assert refusal("topology.py").endswith(
        "; a file alone is in no package: write package.module:name, from the directory that has the package"
    )


@pytest.mark.parametrize("code", ["def build(x: int): ...", "build = Topology('count')"])
def test_of_an_argument_that_is_long_only_the_ends_are_repeated(code: str) -> None:
    """It may be a whole file by mistake."""
    write("topology.py", code)
    assert len(refusal("topology.py:build", x="many" * 100_000)) < 600


def test_a_topology_takes_no_arguments() -> None:
    """An ``--arg`` for a topology that no function makes is refused."""
    write("topology.py", "main = Topology('count')")
    assert "takes no --arg: --arg path=x" in refusal("topology.py", path="x")


def test_annotations_that_cannot_be_read_are_named() -> None:
    """An annotation that does not exist at run time is reported, not raised."""
    write("topology.py", "def build(path: 'Elsewhere') -> Topology: ...")
    message = "the parameters of topology.py:build cannot be read: name 'Elsewhere' is not defined"
    assert refusal("topology.py", path="x") == message


# --- what is not found ---


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("topolgy.py", "there is no file 'topolgy.py'; did you mean topology.py?"),
        ("zzz.py", "there is no file 'zzz.py'; there are: topology.py"),
        ("nowhere/flow.py", "there is no directory '*/nowhere', where nowhere/flow.py should be"),
        ("pack", "'pack' is a directory; name a Python file in it; there are: flows.py"),
        ("./pack:main", "'./pack' is a directory; name a Python file in it; there are: flows.py"),
        ("dir.py", "'dir.py' is a directory; name a Python file in it"),
        ("notes.txt", "'notes.txt' is no Python file: its name must end in .py"),
        ("./topology", "'./topology' is no Python file: its name must end in .py"),
        ("a b", "'a b' is neither a Python file * nor the name of a module *"),
        ("missing.module:x", "there is no module 'missing.module' to import from *"),
        ("pack.missing:x", "there is no module 'pack.missing' to import from *"),
        ("topology.py:", "'topology.py:' is incomplete: write topology.py, *"),
        (":name", "':name' is incomplete: write topology.py, *"),
        ("topology.py:mian", "topology.py has no 'mian'; did you mean main?"),
        ("topology.py:zzz", "topology.py has no 'zzz'; there are: main"),
        ("topology.py:NUMBER", "topology.py:NUMBER is a value of type int, neither *; there are: main"),
        ("topology.py:Count", "topology.py:Count is the class Count, neither a Topology nor *"),
        ("pack.flows:zzz", "pack.flows has no 'zzz'"),
        ("topology.py:number", "topology.py:number returned a value of type int, not a Topology"),
        ("os:path", "os:path is a value of type module, *; there are: makedirs, * and ?? more"),
        ("os", "os has no topology: * Or name *: os:makedirs, * and ?? more"),
        ("topology.py:later", "topology.py:later is an async function; a topology is built by a plain one"),
    ],
)
def test_a_wrong_target_is_explained(target: str, message: str) -> None:
    """Whatever a target fails to name, the message says what there is."""
    code = """
        NUMBER = 3
        class Count: ...
        def number(): return 3
        async def later(): ...
        main = Topology('count')
        """
    write("topology.py", code)
    write("pack/flows.py", "")
    Path("dir.py").mkdir()
    Path("notes.txt").touch()
    assert fnmatchcase(refusal(target), message)


def test_two_topologies_are_both_named() -> None:
    """A file with more than one topology wants a name, and the message lists each as a target."""
    write("topology.py", "a = Topology('a')\nb = Topology('b')\ndef c() -> Topology: ...")
    expected = "topology.py has 3 topologies; name one of them: topology.py:a, topology.py:b, topology.py:c"
    assert refusal("topology.py") == expected


def test_a_file_without_a_topology_lists_its_functions() -> None:
    """A file without topology says what is wanted, and which functions might be meant."""
    write("topology.py", "def build(): ...\ndef other() -> int: ...")
    message = refusal("topology.py")
    assert message.startswith("topology.py has no topology: give it a Topology, or a function annotated")
    assert message.endswith("Or name the function that returns it: topology.py:build, topology.py:other")


def test_an_empty_file_has_no_topology() -> None:
    """A file without anything in it is told what is wanted."""
    write("topology.py", "")
    assert refusal("topology.py").endswith("at its top level.")


# --- the user's own errors ---


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("topology.py", "1 / 0", "topology.py cannot be loaded: ZeroDivisionError: division by zero"),
        ("topology.py", "import nothing_like_it", "topology.py cannot be loaded: ModuleNotFoundError: *"),
        ("topology.py", "def (", "topology.py cannot be loaded: SyntaxError: * (topology.py, line 2)"),
        ("topology.py", "raise SystemExit(3)", "topology.py cannot be loaded: SystemExit: 3"),
        ("topology:x", "import nothing_like_it", "topology cannot be loaded: ModuleNotFoundError: *"),
        ("topology.py:b", "def b(): return 1 / 0", "topology.py:b: ZeroDivisionError: division by zero"),
    ],
)
def test_an_exception_of_the_users_code_is_the_cause(target: str, code: str, message: str) -> None:
    """What the user's code raises is the cause of the TargetError, and the message names the place."""
    write("topology.py", code)
    with pytest.raises(TargetError) as caught:
        load_topology(target, {})
    assert fnmatchcase(str(caught.value), message)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        ("GeneratorExit", "GeneratorExit"),
        ("asyncio.CancelledError('gone')", "CancelledError: gone"),
        ("type('Own', (BaseException,), {})('x')", "Own: x"),
        ("type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})", "Mute: its str() failed"),
        ("ValueError", "ValueError"),
    ],
)
def test_any_exception_of_the_users_code_is_told(raised: str, message: str) -> None:
    """Also one that no program is expected to catch, or that cannot be put into words."""
    write("topology.py", f"import asyncio\nraise {raised}")
    assert refusal("topology.py") == f"topology.py cannot be loaded: {message}"


def test_ctrl_c_while_the_code_is_loaded_is_no_mistake_in_it() -> None:
    """It ends the program as everywhere else."""
    write("topology.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_topology("topology.py", {})


@pytest.mark.parametrize("target", ["link.py", f"{'x' * 300}.py", "x" * 300, "closed.py", "closed/flow.py"])
def test_what_the_file_system_refuses_is_told(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of links, a name that is too long, no permission: never a traceback of ours."""
    Path("link.py").symlink_to("link.py")
    write("closed.py", "")
    monkeypatch.setattr(Path, "open", _denied)
    if target == "closed/flow.py":
        monkeypatch.setattr(Path, "is_file", _denied)
    said = refusal(target)
    # From 3.14 on, Python itself takes a name that is too long for one of nothing.
    missing = (f"there is no file {target!r}", f"there is no module {target!r}")
    assert said.startswith(
        (f"{target} cannot be read: ", missing[target == "x" * 300 and sys.version_info >= (3, 14)])
    )
    assert ("Permission denied" in said) is target.startswith("closed")


def _denied(path: Path, *arguments: object) -> None:
    raise PermissionError(13, "Permission denied", str(path))


def test_a_file_that_failed_leaves_no_module_behind() -> None:
    """A half-loaded module is not found later."""
    write("broken.py", "1 / 0")
    refusal("broken.py")
    assert "broken" not in sys.modules


def test_an_invalid_topology_is_reported_as_it_is() -> None:
    """stormlet's own errors in the user's code already say what to do, and pass through."""
    write("topology.py", "from stormlet.errors import InvalidTopology\nraise InvalidTopology('do this')")
    with pytest.raises(InvalidTopology, match="do this"):
        load_topology("topology.py", {})


def test_the_loaded_thing_is_a_topology() -> None:
    """What is returned is the user's very object."""
    write("topology.py", "main = Topology('count')")
    loaded = load_topology("topology.py", {})
    assert isinstance(loaded, Topology)
    assert loaded is sys.modules["topology"].main
