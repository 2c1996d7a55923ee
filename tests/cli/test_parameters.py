"""Settings from a file, the environment and the command line."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from stormlet import Topology
from stormlet.cli import main
from stormlet.cli import parameters as settings_module
from stormlet.cli.parameters import (
    VARIABLES,
    effective_settings,
    read_arguments,
    read_settings,
    warn_of_ignored,
)
from stormlet.errors import InvalidConfiguration, TargetError
from stormlet.model.configuration import OPTIONS
from tests.cli.flows import write

FILE = Path("settings.toml")

# Prints the settings that its run has.
SHOWING = """
    from stormlet import BasicBolt, Collector, TaskContext, Tuple
    class Show(BasicBolt[object, None]):
        def prepare(self, context: TaskContext) -> None:
            config = context.config
            print(config.ackers, config.max_attempts, config.queue_capacity, config.idle_max, config.slice)
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            pass
    topology = Topology("showing", max_attempts=2, queue_capacity=2, idle_max=2.0, slice=2.0)
    topology.bolt("show", Show, topology.spout("none", []).shuffle())
    """


def of_file(text: str) -> dict[str, Any]:
    FILE.write_text(text, "utf-8")
    return dict(effective_settings(FILE, ()).values)


def test_each_place_wins_over_those_before_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Defaults, then the topology, the file, the environment, and the command line."""
    write(SHOWING)
    FILE.write_text("queue_capacity = 3\nidle_max = 3\nslice = 3\n", "utf-8")
    monkeypatch.setenv("STORMLET_IDLE_MAX", "4")
    monkeypatch.setenv("STORMLET_SLICE", "4")
    assert main(["run", "flow.py", "--config", str(FILE), "--set", "slice=5"]) == 0
    assert capsys.readouterr().out == "1 2 3 4.0 5.0\n"


def test_a_parameter_of_its_own_wins_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """And every value says where it is from."""
    FILE.write_text("ackers = 3\ndrain_timeout = 3\n", "utf-8")
    monkeypatch.setenv("STORMLET_SLICE", "0.5")
    layered = effective_settings(FILE, ["drain_timeout=4", "tick=1"], flags={"drain_timeout": 5.0})
    assert layered.values == {"ackers": 3, "drain_timeout": 5.0, "slice": 0.5, "tick": 1.0}
    assert layered.origins == {
        "ackers": "settings.toml",
        "drain_timeout": "--drain-timeout",
        "slice": "STORMLET_SLICE",
        "tick": "--set",
    }


# The file.


@pytest.mark.parametrize(
    "text",
    [
        '"topology.acker.executors" = 2\n"topology.max.spout.pending" = 7',
        "topology.acker.executors = 2\ntopology.max.spout.pending = 7",
        "[topology]\nacker.executors = 2\n[topology.max.spout]\npending = 7",
        "ackers = 2\n[topology]\nmax = { spout = { pending = 7 } }",
    ],
)
def test_storms_names_may_be_written_in_each_way_of_toml(text: str) -> None:
    """Quoted, bare with dots, and as tables."""
    assert of_file(text) == {"ackers": 2, "max_spout_pending": 7}


@pytest.mark.parametrize("word", ["none", "None", "null"])
def test_a_word_stands_for_the_null_that_toml_does_not_have(word: str) -> None:
    """So that a timeout can be switched off."""
    assert of_file(f'message_timeout = "{word}"\n') == {"message_timeout": None}


def test_an_empty_file_says_nothing() -> None:
    """Nor does an empty table."""
    assert of_file("[topology]\n") == {}


def test_storms_names_without_effect_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """With the place and the reason; their values may be anything, tables too."""
    FILE.write_text("topology.workers = 4\n[topology.component.resources.map]\ncpu = 2\n", "utf-8")
    settings = effective_settings(FILE, ["topology.workers=2"])
    warn_of_ignored(settings, Topology("words"))
    assert settings.values == {}
    assert {(each.name, each.levelno, getattr(each, "topology", "")) for each in caplog.records} == {
        (settings_module.__name__, logging.WARNING, "words")
    }
    workers, resources = caplog.messages
    assert workers == "--set: topology.workers has no effect: there is one process and no workers"
    assert resources.startswith("settings.toml: topology.component.resources.map has no effect: nothing is")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acker = 2", "settings.toml: unknown option 'acker'; did you mean ackers?"),
        ("[stormlet]\nackers = 2", "settings.toml: unknown option 'stormlet.ackers'"),
        ("ackers = '2'", "settings.toml: ackers='2': expected an integer >= 0"),
        ("ackers = true", "settings.toml: ackers=True: expected an integer >= 0"),
        ("ackers = [2]", "settings.toml: ackers=[2]: expected an integer >= 0"),
        ("ackers = { here = 2 }", "settings.toml: ackers={'here': 2}: expected an integer >= 0"),
        (
            "message_timeout = inf",
            "settings.toml: message_timeout=inf: expected a finite number of seconds > 0",
        ),
        ("ackers = 2\ntopology.acker.executors = 3", "ackers and topology.acker.executors are one option"),
        (
            '"topology.acker.executors" = 2\n[topology.acker]\nexecutors = 3',
            "settings.toml: topology.acker.executors is given twice; give it once",
        ),
        (
            "topology.tasks = 2",
            "settings.toml: topology.tasks is not supported: a component has as many tasks",
        ),
        ("ackers 2", "--config settings.toml is no TOML: Expected '=' after a key"),
        ("ackers = 2\nackers = 3", "--config settings.toml is no TOML: Cannot overwrite a value"),
    ],
)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    """It names the file, what is wrong in it, and what would be right."""
    with pytest.raises(InvalidConfiguration) as caught:
        of_file(text)
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Missing, a directory, or no text."""
    with pytest.raises(InvalidConfiguration, match=r"--config settings\.toml cannot be read: No such file"):
        effective_settings(FILE, ())
    with pytest.raises(InvalidConfiguration, match="cannot be read: Is a directory"):
        effective_settings(tmp_path, ())
    FILE.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidConfiguration, match=r"--config settings\.toml is no TOML"):
        effective_settings(FILE, ())


# The environment.


def test_every_option_has_a_variable() -> None:
    """By its name in capitals."""
    assert list(VARIABLES.values()) == list(OPTIONS)
    assert VARIABLES["STORMLET_MAX_SPOUT_PENDING"] == "max_spout_pending"


@pytest.mark.parametrize(("text", "value"), [("2", 2.0), ("0.5", 0.5), ("none", None), (" 3 ", 3.0)])
def test_a_variable_is_read_as_set_is(monkeypatch: pytest.MonkeyPatch, text: str, value: object) -> None:
    """Numbers, and none."""
    monkeypatch.setenv("STORMLET_MESSAGE_TIMEOUT", text)
    assert effective_settings(None, ()).values == {"message_timeout": value}


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """As of ``STORMLET_ACKERS= stormlet run …``."""
    monkeypatch.setenv("STORMLET_ACKERS", text)
    assert effective_settings(None, ()).values == {}


def test_how_stormlet_runs_is_no_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """``STORMLET_COMPILED`` was obeyed when stormlet was imported."""
    monkeypatch.setenv("STORMLET_COMPILED", "0")
    assert effective_settings(None, ()).values == {}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "STORMLET_ACKER",
            "2",
            "the environment variable STORMLET_ACKER sets no option; did you mean STORMLET_ACKERS?",
        ),
        (
            "STORMLET_",
            "",
            "the environment variable STORMLET_ sets no option; there are STORMLET_MESSAGE_TIMEOUT, ",
        ),
        ("STORMLET_ACKERS", "two", "STORMLET_ACKERS: ackers='two': expected an integer >= 0"),
        ("STORMLET_ACKERS", "-1", "STORMLET_ACKERS: ackers=-1: expected an integer >= 0"),
    ],
)
def test_a_wrong_variable_is_refused(
    name: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt one too, which would otherwise be passed over in silence."""
    monkeypatch.setenv(name, text)
    with pytest.raises(InvalidConfiguration) as caught:
        effective_settings(None, ())
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "name",
    [
        "STORMLET_SERVICE_HOST",
        "STORMLET_SERVICE_PORT_HTTP",
        "STORMLET_PORT",
        "STORMLET_PORT_80_TCP_ADDR",
        "STORMLET_WEB_SERVICE_HOST",
    ],
)
def test_what_kubernetes_sets_is_no_option(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service named stormlet puts variables of these names into every pod."""
    monkeypatch.setenv(name, "tcp://10.0.0.1:80")
    assert effective_settings(None, ()).values == {}


# The command line.


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["ackers"], "--set 'ackers' is not a setting: write key=value"),
        (["=2"], "--set '=2' is not a setting: write key=value"),
        (["ackers=2", "ackers=3"], "--set ackers is given twice; give it once"),
    ],
)
def test_a_wrong_set_is_refused(texts: list[str], message: str) -> None:
    """Each is one key and one value."""
    with pytest.raises(InvalidConfiguration, match=message):
        read_settings(texts)


def test_an_option_under_both_names_is_refused() -> None:
    """It would not be clear which one is meant."""
    with pytest.raises(
        InvalidConfiguration, match=r"--set: ackers and topology\.acker\.executors are one option"
    ):
        effective_settings(None, ["ackers=2", "topology.acker.executors=2"])


def test_arguments_are_texts() -> None:
    """The value is all after the first =, and may be empty."""
    assert read_arguments(["path=a=b", "empty="]) == {"path": "a=b", "empty": ""}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["path"], "--arg path: write --arg NAME=VALUE"),
        (["=b"], "--arg =b: write --arg NAME=VALUE"),
        (["path=a", "path=b"], "--arg path is given twice; give it once"),
    ],
)
def test_a_wrong_argument_is_refused(texts: list[str], message: str) -> None:
    """Each is one name and one value."""
    with pytest.raises(TargetError, match=message):
        read_arguments(texts)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", "acker=2"],
        ["--set", "ackers"],
        ["--set", "ackers=2", "--set", "ackers=2"],
        ["--arg", "limit"],
        ["--arg", "limit=2"],
        ["--config", "nowhere.toml"],
    ],
)
def test_wrong_settings_are_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One message, and nothing was run."""
    write("print('it was loaded')" if arguments[0] != "--arg" else "topology = Topology('t')")
    assert main(["run", "flow.py", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("stormlet: ")
    assert arguments[0] in line
