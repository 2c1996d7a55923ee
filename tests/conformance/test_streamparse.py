"""The validation cases of streamparse's test_dsl.py, SP, under the names they have there.

streamparse raises ValueError, TypeError or KeyError when the class of a topology is made; here it is
InvalidTopology, a ValueError, by the call that is wrong, and the message names the component.
"""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    InvalidConfiguration,
    InvalidTopology,
    Spout,
    SpoutCollector,
    Topology,
    Tuple,
)
from stormlet.core.groupings import Fields, Shuffle


class WordSpout(Spout[tuple[str]]):
    """Emits nothing."""

    def next_tuple(self, out: SpoutCollector[tuple[str]]) -> None:
        """Nothing to do."""


class WordCount(BasicBolt[Any, tuple[str, int]]):
    """Counts nothing."""

    def execute(self, tup: Tuple[Any], out: Collector[tuple[str, int]]) -> None:
        """Nothing to do."""


def words(topology: Topology | None = None, id: str = "word_spout", **options: Any) -> Any:
    return (topology or Topology("word count")).spout(id, WordSpout, **{"outputs": ["word"], **options})


def inputs_of(topology: Topology, bolt: str) -> list[tuple[str, str, type]]:
    """Component, stream and grouping of each input."""
    return [
        (each.source.component, each.source.stream, type(each.grouping))
        for each in topology.describe().bolts[bolt].inputs
    ]


# What is valid.


def test_SP_basic_spec() -> None:
    """A spout and a bolt that groups it by a field: two components with their tasks."""
    topology = Topology("word count")
    topology.bolt("word_bolt", WordCount, words(topology, parallelism=2).fields("word"), parallelism=8)
    description = topology.describe()
    assert {id: each.parallelism for id, each in description.components.items()} == {
        "word_spout": 2,
        "word_bolt": 8,
    }
    assert inputs_of(topology, "word_bolt") == [("word_spout", "default", Fields)]


def test_SP_multi_stream_bolt() -> None:
    """A bolt may subscribe to two streams of another one."""
    topology = Topology("word count")
    outputs = {"default": ["word", "count"], "sum": ["all_word_count"]}
    counts = topology.bolt("word_bolt", WordCount, words(topology).shuffle(), outputs=outputs)
    topology.bolt("dumper", WordCount, counts.named("sum").shuffle(), counts.shuffle(), parallelism=4)
    assert inputs_of(topology, "dumper") == [("word_bolt", "sum", Shuffle), ("word_bolt", "default", Shuffle)]


def test_SP_long_chain_spec() -> None:
    """Twelve bolts in a row each read the one before."""
    topology = Topology("word count")
    stream = words(topology)
    for number in range(12):
        stream = topology.bolt(f"bolt{number}", WordCount, stream.shuffle())
    assert topology.describe().in_order() == [["word_spout"], *([f"bolt{number}"] for number in range(12))]


def test_SP_many_spouts_spec() -> None:
    """A bolt may read five spouts."""
    topology = Topology("word count")
    topology.bolt("word_bolt", WordCount, *(words(topology, f"spout{n}").shuffle() for n in range(5)))
    assert [component for component, _, _ in inputs_of(topology, "word_bolt")] == [
        f"spout{n}" for n in range(5)
    ]


def test_SP_spec_with_inputs_as_list() -> None:
    """streamparse takes a bare stream for a shuffled one; here the grouping is always written, and the error
    says so."""
    topology = Topology("word count")
    with pytest.raises(
        InvalidTopology,
        match=r"bolt 'b': stream 'default' of 'word_spout' needs a grouping, such as \.shuffle",
    ):
        topology.bolt("b", WordCount, words(topology))


def test_SP_empty_bolt_group_field() -> None:
    """streamparse refuses a fields grouping without a field; here the whole value is the key."""
    topology = Topology("word count")
    topology.bolt("b", WordCount, words(topology).fields())
    assert inputs_of(topology, "b") == [("word_spout", "default", Fields)]


# What is not.


def test_SP_invalid_bolt_group_field() -> None:
    """An unknown field is refused with those that exist."""
    with pytest.raises(
        InvalidTopology, match=r"of 'word_spout': no field 'foo' in \(word\), which has 'word'"
    ):
        words().fields("foo")


def test_SP_duplicate_name() -> None:
    """A second component of one id is refused."""
    topology = Topology("word count")
    stream = words(topology, "word")
    with pytest.raises(
        InvalidTopology, match="bolt 'word': topology 'word count' has a component of this id already"
    ):
        topology.bolt("word", WordCount, stream.shuffle())


def test_SP_no_input_bolt() -> None:
    """A bolt without an input is refused."""
    topology = Topology("word count")
    words(topology)
    with pytest.raises(InvalidTopology, match="bolt 'word_bolt' has no input; subscribe it to a stream"):
        topology.bolt("word_bolt", WordCount)


def test_SP_no_outputs_spout() -> None:
    """A spout without a stream is refused."""
    with pytest.raises(InvalidTopology, match="spout 'word_spout': outputs declares no stream"):
        words(outputs={})


def test_SP_no_outputs_spout_empty() -> None:
    """streamparse refuses an empty list of fields; here it declares a stream of empty tuples."""
    assert words(outputs=[]).output.schema.fields == ()


class NoSpout:
    """A class that is no component."""


def test_SP_base_component_rejection() -> None:
    """A class that is no spout is refused where a spout is wanted, and a spout where a bolt is."""
    topology = Topology("word count")
    with pytest.raises(InvalidTopology, match="spout 's': class NoSpout does not derive from Spout"):
        topology.spout("s", NoSpout)
    with pytest.raises(InvalidTopology, match="bolt 'b': WordSpout is a Spout"):
        topology.bolt("b", WordSpout, words(topology).shuffle())


def test_SP_component_instead_of_spec() -> None:
    """An instance is refused where a class or a factory is wanted."""
    topology = Topology("word count")
    with pytest.raises(
        InvalidTopology, match=r"spout 's': WordSpout object given, .* pass the class WordSpout, or"
    ):
        topology.spout("s", WordSpout())
    with pytest.raises(
        InvalidTopology, match=r"bolt 'b': WordCount object given, .* pass the class WordCount, or"
    ):
        topology.bolt("b", WordCount(), words(topology).shuffle())


def test_SP_no_spout() -> None:
    """A topology needs a spout."""
    with pytest.raises(InvalidTopology, match="topology 'word count' does not have any spout"):
        Topology("word count").describe()


@pytest.mark.parametrize("parallelism", [0, -1])
def test_SP_zero_par_and_negative_par(parallelism: int) -> None:
    """There is at least one task."""
    with pytest.raises(
        InvalidConfiguration, match=f"'word_spout': parallelism must be at least 1, not {parallelism}"
    ):
        words(parallelism=parallelism)


@pytest.mark.parametrize(
    "parallelism", [5.4, 5.0, "5", True, None, {"prod": 5, "beta": 1}, {1000: 5}, {"prod": 5.5, "beta": 1}]
)
def test_SP_float_par_and_dict_par(parallelism: object) -> None:
    """Parallelism is an int: neither a float nor a number for each environment."""
    with pytest.raises(InvalidConfiguration, match="'word_spout': parallelism must be an int, not "):
        words(parallelism=parallelism)


@pytest.mark.parametrize(
    "given", ["word_spout", "word", {"word_spout": "word"}, ["word_spout"], None, WordSpout]
)
def test_SP_invalid_bolt_input(given: Any) -> None:
    """An input is a grouped stream, never a name, a list or a dict."""
    topology = Topology("word count")
    words(topology)
    with pytest.raises(InvalidTopology, match=r"bolt 'word_bolt': .* is no input; pass a grouped stream"):
        topology.bolt("word_bolt", WordCount, given)


def test_SP_invalid_config_str() -> None:
    """Options are keywords: a string of JSON has no place among them."""
    topology = Topology("word count")
    with pytest.raises(InvalidConfiguration, match="bolt 'word_bolt': unknown option 'config'"):
        topology.bolt("word_bolt", WordCount, words(topology).shuffle(), config='{"foo": "bar"}')


def test_SP_invalid_topology_config_str() -> None:
    """The same holds for the options of the topology."""
    with pytest.raises(InvalidConfiguration, match="topology 'word count': unknown option 'config'"):
        Topology("word count", config='{"foo": "bar"}')


def test_SP_invalid_outputs_entry_int() -> None:
    """Field names are strings."""
    with pytest.raises(InvalidTopology, match="'word_spout': field names are strings, not 2"):
        words(outputs=["foo", 2])


def test_SP_invalid_outputs_str() -> None:
    """A lone string is no list of names."""
    with pytest.raises(
        InvalidTopology, match="'word_spout': outputs='foo' is neither a type nor a list of field names"
    ):
        words(outputs="foo")


def test_SP_unknown_stream() -> None:
    """An undeclared stream is refused with those that are declared."""
    with pytest.raises(InvalidTopology, match="'word_spout' declares no stream 'word', only 'default'"):
        words().named("word")
