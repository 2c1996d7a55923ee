"""Whatever tests give to the test kit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from stormlet import InvalidConfiguration, Topology, TopologyCrashed
from stormlet.testing import Fault, FaultKind, Faults, complete, run_bolt
from stormlet.testing.chaos.faults import read_faults
from tests.fuzz.fuzzed import fuzzed
from tests.fuzz.inputs import numbers, texts

values = st.recursive(
    st.none() | st.integers() | st.floats() | texts | st.binary(max_size=5) | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(texts, inner, max_size=2)
    ),
    max_leaves=6,
)

kinds = st.sampled_from(["kill", "error", "slow", "crowd", "explode"]) | texts
words = (
    st.builds("{}={}".format, kinds, numbers) | st.builds("{}:{}@{}".format, kinds, texts, numbers) | texts
)


REFUSALS = r"write rates such as|there is no fault|a number from 0 to 1"


@fuzzed(st.lists(words, max_size=3).map(" ".join))
def test_any_faults(text: str) -> None:
    """They are read, and written the same again; or the error says what is understood."""
    refusal = None
    faults: Faults | Sequence[Fault] = ()
    try:
        faults = read_faults(text)
    except InvalidConfiguration as error:
        refusal = str(error)
    assert refusal is None or re.search(REFUSALS, refusal)
    if isinstance(faults, Faults):
        assert all(0.0 <= faults.rate(kind) <= 1.0 for kind in FaultKind)
    elif faults:
        assert read_faults(" ".join(map(str, faults))) == faults


@fuzzed(st.lists(values, max_size=4))
def test_any_values_of_a_bolt(given_values: list[object]) -> None:
    """Each is executed once, and acked."""
    seen: list[object] = []
    result = run_bolt(seen.append, given_values)
    assert len(seen) == len(given_values)
    assert all(one is other for one, other in zip(seen, given_values, strict=True))
    assert len(result.acked) == len(given_values)


@fuzzed(st.lists(values, max_size=4))
def test_any_values_of_a_source(given_values: list[object]) -> None:
    """Each goes through the topology, whatever it is."""
    topology = Topology("any")
    source = topology.spout("values")
    topology.bolt("same", lambda value: [value], source.shuffle(), parallelism=2)
    done = complete(topology, {"values": given_values})
    assert sorted(map(id, (value for [value] in done["same"]))) == sorted(map(id, given_values))


@fuzzed(st.lists(values, min_size=1, max_size=4))
def test_any_keys(given_values: list[object]) -> None:
    """A value that can be no key crashes the topology with an error that names it; others go where their equals go."""
    topology = Topology("keys")
    source = topology.spout("values")
    topology.bolt("same", lambda value: [value], source.fields(), parallelism=3)
    refusal = ""
    try:
        done = complete(topology, {"values": given_values})
    except TopologyCrashed as error:
        refusal = str(error.__cause__)
    else:
        assert len(done["same"]) == len(given_values)
    assert not refusal or "fields" in refusal
