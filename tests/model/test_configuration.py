"""Options: names, types, ranges, and where each may stand."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.errors import InvalidConfiguration, InvalidTopology
from stormlet.model.configuration import (
    COMPONENT_OPTIONS,
    OPTIONS,
    ComponentKind,
    Configuration,
    Options,
    Setting,
    component_options,
    configure,
    parse_setting,
    read_options,
    spell_setting,
)

WHERE = "topology 'word-count'"
DEFAULT = Configuration()


def refusal(options: Mapping[str, object]) -> str:
    with pytest.raises(InvalidConfiguration) as raised:
        configure(DEFAULT, options, WHERE)
    return str(raised.value)


def component_refusal(kind: ComponentKind, options: Mapping[str, object]) -> str:
    with pytest.raises(InvalidConfiguration) as raised:
        component_options(kind, options, "component 'c'", keywords=("parallelism",))
    return str(raised.value)


def test_defaults() -> None:
    """The defaults are the ones that the law names."""
    assert {name: getattr(DEFAULT, name) for name in OPTIONS} == {
        "message_timeout": 30.0,
        "timeout_buckets": 3,
        "timeout_restarts_on": "init",
        "ackers": 1,
        "acker_high_water": None,
        "max_spout_pending": 1000,
        "queue_capacity": 1024,
        "slice": 0.002,
        "idle_max": 0.1,
        "max_attempts": 5,
        "replay_delay": 0.1,
        "replay_delay_max": 30.0,
        "max_restarts": 3,
        "restart_window": 60.0,
        "restart_delay": 0.1,
        "restart_delay_max": 10.0,
        "drain_timeout": 30.0,
        "epoch_messages": 10_000,
        "epoch_seconds": 1.0,
        "history": 0.0,
        "record_edges": 0.0,
        "explain_stuck": None,
        "tick": None,
    }


def test_every_option_is_documented() -> None:
    """Each option has a docstring under it that names its default and its law."""
    body = ast.parse(inspect.getsource(Configuration)).body[0]
    assert isinstance(body, ast.ClassDef)
    documented: dict[str, str] = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr)
            documented[field.target.id] = str(ast.literal_eval(text.value))
    assert tuple(documented) == OPTIONS
    assert [name for name, text in documented.items() if "law" not in text or "efault" not in text] == []


def test_the_defaults_pass_their_own_checks() -> None:
    """Writing every default out changes nothing."""
    assert configure(DEFAULT, {name: getattr(DEFAULT, name) for name in OPTIONS}, WHERE) == DEFAULT


SECONDS = "a finite number of seconds"

RANGES: list[tuple[str, str, list[Setting], list[object]]] = [
    ("message_timeout", f"{SECONDS} > 0 or None", [0.001, 1, None], [0, -1, "30", True]),
    ("timeout_buckets", "an integer from 2 to 10000", [2, 10_000], [1, 10_001, 2.0, None, True]),
    ("timeout_restarts_on", "'activity' or 'init'", ["init", "activity"], ["never", None, 1]),
    ("ackers", "an integer >= 0", [0, 7], [-1, None, False, 1.5]),
    ("acker_high_water", "an integer >= 1 or None", [1, None], [0, 1.0, True]),
    ("max_spout_pending", "an integer >= 1 or None", [1, None], [0, -1, "1", True]),
    ("queue_capacity", "an integer >= 1", [1], [0, None, True]),
    ("slice", f"{SECONDS} > 0", [0.001, 1], [0, None, "fast"]),
    ("idle_max", f"{SECONDS} > 0", [0.001, 1], [0.0, None]),
    ("max_attempts", "an integer >= 1", [1], [0, None, 1.0]),
    ("replay_delay", f"{SECONDS} >= 0", [0, 0.5], [-0.1, None]),
    ("replay_delay_max", f"{SECONDS} >= 0", [0.1, 60], [-1, None]),
    ("max_restarts", "an integer >= 0", [0, 1], [-1, None, 1.0]),
    ("restart_window", f"{SECONDS} > 0", [0.5, 60], [0, None]),
    ("restart_delay", f"{SECONDS} >= 0", [0, 0.5], [-0.1, None]),
    ("restart_delay_max", f"{SECONDS} >= 0", [0.1, 60], [-1, None]),
    ("drain_timeout", f"{SECONDS} >= 0 or None", [0, 5, None], [-1, "0", False]),
    ("epoch_messages", "an integer >= 1", [1, 100], [0, None, 1.0]),
    ("epoch_seconds", f"{SECONDS} > 0", [0.1, 5], [0, None]),
    ("history", f"{SECONDS} >= 0", [0, 3600.5], [-1, None]),
    ("record_edges", "a number from 0 to 1", [0, 0.01, 1], [-0.1, 1.5, None, "all"]),
    ("explain_stuck", f"{SECONDS} > 0 or None", [0.5, 10, None], [0, True, "soon"]),
    ("tick", f"{SECONDS} > 0 or None", [0.5, 10, None], [0, True, [1]]),
]


def test_every_option_has_a_range_here() -> None:
    """The table of ranges misses no option."""
    assert [name for name, *_ in RANGES] == list(OPTIONS)


@pytest.mark.parametrize(("option", "words", "good", "bad"), RANGES, ids=[row[0] for row in RANGES])
def test_range(option: str, words: str, good: list[Setting], bad: list[object]) -> None:
    """What is in range is taken; the rest is refused with place, option, value and what was expected."""
    for right in good:
        assert getattr(configure(DEFAULT, {option: right}, WHERE), option) == right
    for wrong in bad:
        assert refusal({option: wrong}) == f"{WHERE}: {option}={wrong!r}: expected {words}"


@pytest.mark.parametrize("value", [math.inf, math.nan, 10**400])
def test_seconds_are_finite(value: float) -> None:
    """Infinite and unrepresentable times are refused: None is how to say never."""
    assert refusal({"drain_timeout": value}).endswith("expected a finite number of seconds >= 0 or None")


def test_an_integer_is_a_number_of_seconds() -> None:
    """An int is taken for a float, and becomes one."""
    timeout = configure(DEFAULT, {"message_timeout": 10}, WHERE).message_timeout
    assert (timeout, type(timeout)) == (10.0, float)


def test_a_decimal_is_a_number_of_seconds_and_a_fraction_is_none() -> None:
    """Of the other number types only Decimal is taken."""
    assert configure(DEFAULT, {"tick": Decimal("1.5")}, WHERE).tick == 1.5
    assert "tick=Fraction(1, 2): expected" in refusal({"tick": Fraction(1, 2)})


def test_configure_keeps_the_rest_and_the_base() -> None:
    """Only what is named changes, and the base stays as it was."""
    base = configure(DEFAULT, {"ackers": 3, "tick": 1.0}, WHERE)
    changed = configure(base, {"tick": 2.0}, WHERE)
    assert (changed.ackers, changed.tick, base.tick) == (3, 2.0, 1.0)


def test_an_error_is_an_invalid_topology() -> None:
    """One except clause catches a wrong description and a wrong option."""
    with pytest.raises(InvalidTopology):
        configure(DEFAULT, {"ackers": -1}, WHERE)


def test_the_longest_replay_delay_is_not_below_the_first() -> None:
    """The two delays are checked together, over whatever the base has."""
    assert configure(DEFAULT, {"replay_delay": 30}, WHERE).replay_delay == 30.0
    assert refusal({"replay_delay": 60}) == (
        f"{WHERE}: replay_delay=60.0 is above replay_delay_max=30.0; raise the one or lower the other"
    )


def test_unknown_name() -> None:
    """An unknown name is refused with the nearest known ones, best first."""
    assert refusal({"mesage_timeout": 1}).startswith(
        f"{WHERE}: unknown option 'mesage_timeout'; did you mean message_timeout or "
    )


def test_unknown_name_of_storm() -> None:
    """A misspelt Storm key leads to the Storm key."""
    message = refusal({"topology.max.spout.pendin": 1})
    assert "unknown option 'topology.max.spout.pendin'; did you mean topology.max.spout.pending" in message


def test_unknown_name_near_nothing() -> None:
    """Where nothing is near, all options are named."""
    assert refusal({"zzz": 1}) == f"{WHERE}: unknown option 'zzz'; there are {', '.join(OPTIONS)}"


def test_read_options_gives_only_what_was_given() -> None:
    """Options that nobody named are absent, so that they can be laid over a base."""
    assert read_options({}, WHERE) == Options({}, {})
    assert read_options({"ackers": 2, "tick": 5}, WHERE) == Options({"ackers": 2, "tick": 5.0}, {})


@pytest.mark.parametrize(
    ("key", "value", "option", "ours"),
    [
        ("topology.message.timeout.secs", 10, "message_timeout", 10.0),
        ("topology.acker.executors", 0, "ackers", 0),
        ("topology.acker.executors", None, "ackers", 1),
        ("topology.max.spout.pending", 50, "max_spout_pending", 50),
        ("topology.max.spout.pending", None, "max_spout_pending", None),
        ("topology.tick.tuple.freq.secs", 2, "tick", 2.0),
        ("topology.tick.tuple.freq.secs", None, "tick", None),
        ("topology.executor.receive.buffer.size", 32768, "queue_capacity", 32768),
        ("topology.sleep.spout.wait.strategy.time.ms", 5, "idle_max", 0.005),
        ("topology.enable.message.timeouts", False, "message_timeout", None),
    ],
)
def test_storm_key(key: str, value: object, option: str, ours: Setting) -> None:
    """Storm's key sets our option, in our unit."""
    assert read_options({key: value}, WHERE) == Options({option: ours}, {})


def test_a_storm_key_out_of_range_is_shown_in_both_spellings() -> None:
    """The message shows what was given and what it would be here, because the units differ."""
    assert refusal({"topology.sleep.spout.wait.strategy.time.ms": 0}) == (
        f"{WHERE}: topology.sleep.spout.wait.strategy.time.ms=0 (here idle_max=0.0): "
        "expected a finite number of seconds > 0"
    )


@pytest.mark.parametrize("value", ["5", True, None])
def test_storm_milliseconds_of_a_wrong_type(value: object) -> None:
    """What is no number of milliseconds is refused like any other wrong type."""
    assert "(here idle_max=" in refusal({"topology.sleep.spout.wait.strategy.time.ms": value})


def test_storm_timeout_null_is_not_never() -> None:
    """Storm forbids null where ours means never: it is refused, with the way out."""
    assert refusal({"topology.message.timeout.secs": None}) == (
        f"{WHERE}: topology.message.timeout.secs=None: null is no timeout; "
        "topology.enable.message.timeouts: false switches timeouts off"
    )


@pytest.mark.parametrize("timeout", ["topology.message.timeout.secs", "message_timeout"])
@pytest.mark.parametrize("switch_first", [True, False])
def test_storm_timeout_switch_wins(timeout: str, switch_first: bool) -> None:
    """Timeouts that are switched off stay off, whatever timeout stands beside, in either order."""
    items: list[tuple[str, object]] = [("topology.enable.message.timeouts", False), (timeout, 10)]
    options = dict(items if switch_first else reversed(items))
    assert read_options(options, WHERE).values == {"message_timeout": None}


def test_storm_timeout_switch_on() -> None:
    """Timeouts that are switched on are as they were."""
    on: dict[str, object] = {"topology.enable.message.timeouts": True}
    assert read_options(on, WHERE) == Options({}, {})
    assert read_options({**on, "message_timeout": 5}, WHERE).values == {"message_timeout": 5.0}


@pytest.mark.parametrize("value", [0, "false", None])
def test_storm_timeout_switch_of_a_wrong_type(value: object) -> None:
    """The switch is true or false, and nothing that looks like it."""
    message = f"{WHERE}: topology.enable.message.timeouts={value!r}: expected true or false"
    assert refusal({"topology.enable.message.timeouts": value}) == message


def test_an_option_under_both_names() -> None:
    """Our name and Storm's for one option cannot stand side by side."""
    assert refusal({"topology.acker.executors": 2, "ackers": 2}) == (
        f"{WHERE}: topology.acker.executors and ackers are one option; give it once"
    )


def test_ignored_storm_key() -> None:
    """A key without effect is returned with its reason, for the caller to warn of, and changes nothing."""
    read = read_options({"topology.workers": 4, "ui.port": 8080, "ackers": 2}, WHERE)
    assert read.values == {"ackers": 2}
    assert read.ignored == {
        "topology.workers": "there is one process and no workers",
        "ui.port": "it configures Storm's daemons, and there are none",
    }
    assert configure(DEFAULT, {"topology.workers": 4}, WHERE) == DEFAULT


def test_refused_storm_key() -> None:
    """A key that would silently change results is an error that gives the reason."""
    assert refusal({"topology.tasks": 8}) == (
        f"{WHERE}: topology.tasks is not supported: "
        "a component has as many tasks as its parallelism; give it parallelism=..."
    )


def test_null_is_not_set() -> None:
    """Storm writes null for what is not set: there is nothing to ignore and nothing to refuse."""
    nothing = {"topology.tasks": None, "topology.state.provider": None, "topology.workers": None}
    assert read_options(nothing, WHERE) == Options({}, {})


KINDS: list[ComponentKind] = ["spout", "bolt"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_a_component(kind: ComponentKind, option: str) -> None:
    """A component takes its own options; another one is refused with the place it belongs to."""
    own = COMPONENT_OPTIONS[kind]
    options = {option: getattr(DEFAULT, option)}
    if option in own:
        assert component_options(kind, options, "component 'c'") == Options(options, {})
        return
    other = {"spout": "bolt", "bolt": "spout"}[kind]
    belongs = (
        f"{other}s" if option in (*COMPONENT_OPTIONS["spout"], *COMPONENT_OPTIONS["bolt"]) else "the topology"
    )
    message = f"component 'c': {option} belongs to {belongs}; here may stand {', '.join(own)}"
    assert component_refusal(kind, options) == message


def test_which_options_are_a_components() -> None:
    """Overridable are what paces or replays one spout, what feeds one bolt, and what restarts either."""
    restarts = ("max_restarts", "restart_window", "restart_delay", "restart_delay_max")
    assert {
        "spout": (
            "max_spout_pending",
            "max_attempts",
            "replay_delay",
            "replay_delay_max",
            "idle_max",
            *restarts,
        ),
        "bolt": ("queue_capacity", "tick", *restarts),
    } == COMPONENT_OPTIONS


def test_a_component_takes_storm_keys() -> None:
    """Storm's keys work for components too; where one belongs is said under the name that was given."""
    ticks = component_options("bolt", {"topology.tick.tuple.freq.secs": 3, "topology.debug": True}, WHERE)
    assert ticks.values == {"tick": 3.0}
    assert list(ticks.ignored) == ["topology.debug"]
    message = component_refusal("spout", {"topology.tick.tuple.freq.secs": 3})
    assert message.startswith(
        "component 'c': topology.tick.tuple.freq.secs belongs to bolts; here may stand max_s"
    )


def test_timeouts_are_not_switched_off_for_one_component() -> None:
    """The switch belongs where the timeout belongs."""
    message = component_refusal("bolt", {"topology.enable.message.timeouts": False})
    assert message.startswith("component 'c': topology.enable.message.timeouts belongs to the topology; ")


def test_a_component_checks_ranges() -> None:
    """An override is checked like the topology's own."""
    assert component_refusal("spout", {"max_attempts": 0}) == (
        "component 'c': max_attempts=0: expected an integer >= 1"
    )


def test_misspelt_keyword_of_a_component() -> None:
    """The caller's own keywords are suggested beside the options, and the topology's options are not."""
    message = component_refusal("bolt", {"paralelism": 2})
    assert message == "component 'c': unknown option 'paralelism'; did you mean parallelism?"
    message = component_refusal("bolt", {"zzz": 2})
    assert message == (
        "component 'c': unknown option 'zzz'; there are queue_capacity, tick, max_restarts, restart_window, "
        "restart_delay, restart_delay_max, parallelism"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ('"10"', "10"),
        ('""', ""),
        ("activity", "activity"),
        ("", ""),
        ("1_000", "1_000"),
        ("inf", "inf"),
        ("[1]", "[1]"),
        ('"open', '"open'),
        ("a=b", "a=b"),
        ("\N{ARABIC-INDIC DIGIT THREE}", "\N{ARABIC-INDIC DIGIT THREE}"),
    ],
)
def test_parse_setting(text: str, value: object) -> None:
    """The value is read as a JSON scalar or one of four words; anything else stays text."""
    key, parsed = parse_setting(f"some.key={text}")
    assert (key, parsed, type(parsed)) == ("some.key", value, type(value))


@pytest.mark.parametrize("value", [None, 3, 0.1, 1e-7, 1234567.891, "activity", "true", "7", ""])
def test_what_is_spelt_is_parsed_again(value: Setting) -> None:
    """To the same value and type, so that a printed command line sets what was set."""
    key, parsed = parse_setting(spell_setting("some.key", value))
    assert (key, parsed, type(parsed)) == ("some.key", value, type(value))


def test_parse_setting_strips_spaces() -> None:
    """Spaces around key and value are not part of them."""
    assert parse_setting(" tick = 2 ") == ("tick", 2)


@given(value=st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans())
def test_parse_setting_reads_back_what_python_prints(value: object) -> None:
    """Whatever scalar is printed into a setting comes out of it, with its type."""
    parsed = parse_setting(f"key={value}")[1]
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize("text", ["", "tick", "=5", " = 5"])
def test_parse_setting_without_key_or_equals(text: str) -> None:
    """What is no setting is refused, with the right form."""
    with pytest.raises(
        InvalidConfiguration, match=r"is not a setting: write key=value, for example"
    ) as raised:
        parse_setting(text)
    assert str(raised.value).startswith(repr(text))


def test_text_that_is_no_utf_8_is_refused_like_any_other() -> None:
    """Python reads arguments of a command line that are none with lone surrogates."""
    assert parse_setting("tick=\udcff") == ("tick", "\udcff")
    assert "expected" in refusal({"timeout_restarts_on": "\udcff"})
