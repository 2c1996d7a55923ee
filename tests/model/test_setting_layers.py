"""Settings from several places."""

from __future__ import annotations

import pytest

from stormlet.errors import InvalidConfiguration
from stormlet.model.setting_layers import Layer, lay


def test_later_layers_win() -> None:
    """Each value is of the last layer that has one, and says which."""
    layered = lay(
        [Layer("file", {"ackers": 1, "tick": 1}), Layer("environment", {"topology.acker.executors": 2})]
    )
    assert layered.values == {"ackers": 2, "tick": 1.0}
    assert layered.origins == {"ackers": "environment", "tick": "file"}


def test_no_layers_say_nothing() -> None:
    """The topology's own settings stay."""
    layered = lay([])
    assert (layered.values, layered.origins, layered.ignored) == ({}, {}, {})


def test_none_is_a_value() -> None:
    """A later layer can switch off what an earlier one set; Storm's switch too."""
    off = {"topology.enable.message.timeouts": False}
    assert lay([Layer("file", {"message_timeout": 5}), Layer("--set", off)]).values == {
        "message_timeout": None
    }
    assert lay([Layer("file", off), Layer("--set", {"message_timeout": 5})]).values == {
        "message_timeout": 5.0
    }


def test_what_has_no_effect_is_kept_once() -> None:
    """By its name, with the last place that has it and the reason."""
    layered = lay([Layer("file", {"topology.workers": 1}), Layer("--set", {"topology.workers": 2})])
    assert layered.values == {}
    assert layered.ignored == {"topology.workers": ("--set", "there is one process and no workers")}


def test_an_error_names_its_layer() -> None:
    """And a wrong layer is refused although a later one would win."""
    with pytest.raises(InvalidConfiguration, match=r"^file: ackers='x': expected an integer >= 0"):
        lay([Layer("file", {"ackers": "x"}), Layer("--set", {"ackers": 1})])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ackers": None}, "--set: ackers=none: expected an integer >= 0"),
        ({"message_timeout": 0}, "--set: message_timeout=0: expected a finite number of seconds > 0 or none"),
        (
            {"topology.message.timeout.secs": None},
            "--set: topology.message.timeout.secs=none: null is no timeout",
        ),
    ],
)
def test_errors_spell_none_as_files_and_command_lines_do(options: dict[str, object], message: str) -> None:
    """Nobody writes Python there."""
    with pytest.raises(InvalidConfiguration) as caught:
        lay([Layer("--set", options)])
    assert str(caught.value).startswith(message)
