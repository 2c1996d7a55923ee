"""Annotations that Python evaluates when they are read, from 3.14 on: type checkers alone may know a name in one."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from stormlet.cli.inspecting.checks.code import mistaken_factories
from stormlet.core.records import keys_of
from stormlet.loading import load_topology
from stormlet.model.signatures import (
    can_be_called,
    parameter_names,
    positional_parameters,
    returned,
    takes_resume,
)
from stormlet.spark.engine.planning.arguments import unsaved
from stormlet.spark.engine.planning.shipping import unfound
from stormlet.topology import Topology
from tests.testing.plugin_runs import inner, run

__all__ = ["inner"]

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="before Python 3.14, such a name raises where it stands"
)


def defined(source: str) -> Any:
    """The last thing of a module of this source, whose annotations are not postponed as ours are."""
    module: dict[str, object] = {"__name__": "users"}
    exec(compile(dedent(source), "users.py", "exec", dont_inherit=True), module)
    return [*module.values()][-1]


def test_a_function_that_returns_a_topology_is_found(tmp_path: Path) -> None:
    """Beside functions whose annotations cannot be read; its own may name a Topology that is not imported."""
    target = tmp_path / "flows.py"
    target.write_text("""
import stormlet
def orders() -> Order: ...
def build(order: Order | None = None) -> Topology: return stormlet.Topology("built")
""")
    assert load_topology(str(target), {}).name == "built"


def test_parameters_are_counted_without_their_annotations() -> None:
    """Each question about a signature is answered; the type that is returned is not known."""
    function = defined("def bill(order: Order, resume: Order = 1) -> Order: ...")
    assert parameter_names(function) == ("order", "resume")
    assert (positional_parameters(function), takes_resume(function)) == (2, True)
    assert (can_be_called(function, 1), can_be_called(function), returned(function)) == (True, False, None)


def test_keys_of_a_typed_dict_are_known() -> None:
    """And so is which of them are required, whatever their types are."""
    source = """
        from typing import NotRequired, TypedDict
        class Order(TypedDict):
            id: Id
            note: NotRequired[Note]
    """
    assert keys_of(defined(source)) == (("id", "note"), ("id",))


def test_checks_read_functions_and_arguments() -> None:
    """That of factories, and those of what a stream on Spark saves and sends."""
    source = """
        from functools import partial
        from stormlet import BasicBolt, Topology
        class Bill(BasicBolt):
            def __init__(self, order: Order) -> None: self.order = order
            def execute(self, tup: Tuple[Order], out: Collector[Order]) -> None: ...
        def bills(order: Order = 1) -> Order: return Bill(order)
        def local():
            class Local: ...
            def bill(order: Order, local: Local) -> Local: return local
            return partial(bill, local=1)
        topology = Topology("t")
        orders = topology.spout("orders", [1])
        topology.bolt("bills", bills, orders.shuffle())
        topology.bolt("bill", partial(Bill, lambda: 1), orders.shuffle())
        topology.bolt("local", local(), orders.shuffle())
        built = topology
    """
    topology: Topology = defined(source)
    description = topology.describe()
    assert [found.component for found in mistaken_factories(description)] == ["bills"]
    assert "order=" in "".join(unsaved(description.bolts["bill"]))
    assert "Local" in "".join(unfound(description))


def test_a_test_names_its_fixtures_types(inner: pytest.Pytester) -> None:
    """A test on simulated time, which is given its fixtures by name."""
    result = run(
        inner,
        """
        @pytest.mark.simulated_time
        async def test_simulated(sim: Simulation) -> None:
            await sim.advance(minutes=10)
        """,
    )
    result.assert_outcomes(passed=1)
