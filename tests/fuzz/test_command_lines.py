"""Whatever stands on a command line: an exit code and a message, and no traceback of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example
from hypothesis import strategies as st

from tests.fuzz.cli_runs import DONE, WRONG_USAGE, run_cli
from tests.fuzz.fuzzed import fuzzed
from tests.fuzz.inputs import numbers, settings_given, texts

OPTIONS = {
    "check": ["--arg", "--set", "--config", "--strict", "--json"],
    "describe": ["--arg", "--set", "--config", "--json"],
    "graph": ["--arg", "--set", "--config", "--format", "--direction"],
    "simulate": ["--arg", "--set", "--config", "--seed", "--faults", "--seconds"],
    "dead-letters": ["--component", "--cause", "--last", "--json", "--replayable"],
    "run": [
        "--arg",
        "--set",
        "--config",
        "--duration",
        "--drain-timeout",
        "--dead-letters",
        "--seed",
        "--loop",
    ],
    "new": ["--force"],
    "soak": ["--minutes", "--burst", "--every", "--growth", "--seed"],
    "bench": ["--rounds", "--scale"],
    "state list": ["--epoch", "--json"],
    "state show": ["--epoch", "--limit", "--json"],
    "state get": ["--epoch"],
    "state diff": ["--epoch", "--limit", "--json"],
    "state export": ["--epoch"],
    "state import": ["--arg", "--set", "--config"],
    "state check": ["--arg", "--set", "--config"],
    "state rename": ["--epoch"],
    "state forget": ["--epoch"],
    "state save": ["--epoch"],
    "state rewind": ["--epoch", "--at"],
}
"""The commands, with options that take a value or none."""

lines = st.lists(texts, max_size=4)


@pytest.mark.usefixtures("there")
@fuzzed(lines)
def test_any_words(words: list[str]) -> None:
    """No command at all, or none of ours."""
    assert run_cli(words).is_in_our_words()


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    """A command with a wrong target, or none, and any options."""
    command = draw(st.sampled_from([*OPTIONS]))
    line = [*command.split(), *draw(st.lists(texts.filter(lambda word: "flow" not in word), max_size=2))]
    for option in draw(st.lists(st.sampled_from(OPTIONS[command]), max_size=3)):
        line += [option, *draw(st.lists(texts | numbers, max_size=1))]
    return line if command not in ("bench", "new") else [*line, "--no-such-option"]


@pytest.mark.usefixtures("there")
@fuzzed(commands())
def test_any_command(line: list[str]) -> None:
    """What it cannot do, it says."""
    ended = run_cli(line)
    assert ended.is_in_our_words()
    assert ended.code == WRONG_USAGE or "Usage: stormlet" in ended.out


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("command", ["check", "describe", "graph"])
@fuzzed(setting=settings_given)
@example(setting="ackers=1000000000000")
@example(setting="timeout_buckets=1000000000000")
@example(setting="message_timeout=\udcff")
def test_any_setting(command: str, setting: str) -> None:
    """It is taken, or the message says which one is wrong."""
    ended = run_cli([command, "flow.py:topology", f"--set={setting}"])
    assert ended.is_in_our_words()
    if ended.code != DONE:
        key = setting.partition("=")[0].strip()[:100]
        assert key.encode(errors="backslashreplace").decode() in ended.err or repr(key)[1:-1] in ended.err


@pytest.mark.usefixtures("there")
@fuzzed(st.sampled_from(["times", "word"]) | texts, texts | numbers)
@example("times", "\udcff")
@example("times", "-9223372036854775809")
def test_any_argument(name: str, value: str) -> None:
    """It is converted to what the function says, or the message says why not."""
    ended = run_cli(["check", "flow.py:build", f"--arg={name}={value}"])
    assert ended.is_in_our_words()
    assert ended.code == DONE or "--arg" in ended.err or "flow.py:build" in ended.err


@pytest.mark.usefixtures("there")
@fuzzed(texts | st.builds("flow.py:{}".format, texts))
def test_any_target(target: str) -> None:
    """A file, a module, a name in it, or neither."""
    assert run_cli(["check", "--", target]).is_in_our_words()


@pytest.mark.usefixtures("there")
@fuzzed(texts | st.builds("{}={}".format, st.sampled_from(["kill", "drop", "crowd"]), numbers))
@example("kill:count[0]@9999999999999999999999999999999")
@example("kill:count[0]@" + "9" * 5000)
def test_any_faults(faults: str) -> None:
    """They are injected, or the message repeats them."""
    ended = run_cli(["simulate", "flow.py:topology", "--seed=1", f"--faults={faults}"])
    assert ended.is_in_our_words()


@fuzzed(
    st.sampled_from(["--duration", "--drain-timeout", "--seed", "--loop", "--log-level"]), texts | numbers
)
def test_any_value_of_an_option(there: Path, option: str, value: str) -> None:
    """The run ends, or does not begin for a reason."""
    ended = run_cli(["run", "flow.py:topology", "--quiet", f"{option}={value}"])
    assert ended.is_in_our_words()
