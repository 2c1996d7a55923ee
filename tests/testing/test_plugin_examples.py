"""Hypothesis' tests, on simulated time: each example of an `async def` test is a run of its own."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.testing.plugin_runs import run

pytestmark = pytest.mark.parametrize("mode", ["--asyncio-mode=strict", "--asyncio-mode=auto"])

MARK = "@pytest.mark.simulated_time"
GIVEN = "@given(st.integers(0, 9))"

TOOLS = """
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stormlet.testing import Simulation

def now():
    assert asyncio.get_running_loop().simulated_time
    return asyncio.get_running_loop().time()
"""


def outcome(inner: pytest.Pytester, test: str, mode: str) -> pytest.RunResult:
    return run(inner, TOOLS + dedent(test), mode)


@pytest.mark.parametrize("decorators", [f"{MARK}\n{GIVEN}", f"{GIVEN}\n{MARK}"], ids=["outside", "inside"])
def test_each_example_begins_at_time_zero(inner: pytest.Pytester, mode: str, decorators: str) -> None:
    """Whichever of the marker and `@given` comes first, each example has a loop of its own, and time passes there."""
    test = "async def test_it(number):\n    assert now() == 0\n    await asyncio.sleep(60)\n    assert now() == 60\n"
    outcome(inner, f"{decorators}\n{test}", mode).assert_outcomes(passed=1, warnings=0)


def test_marked_classes_and_modules_and_parameters(inner: pytest.Pytester, mode: str) -> None:
    """A method under `@given` is given `self`, parameters and plain fixtures too, and a plain test is left alone."""
    result = outcome(
        inner,
        """
        pytestmark = pytest.mark.simulated_time

        @pytest.fixture(scope="module")
        def ten():
            return 10

        class TestAll:
            @pytest.mark.parametrize("factor", [1, 2])
            @given(number=st.integers(0, 9))
            async def test_async(self, ten, factor, number):
                assert isinstance(self, TestAll)
                await asyncio.sleep(1)
                assert (now(), ten * factor > number) == (1, True)

            @given(st.integers(0, 9))
            def test_plain(self, number):
                with pytest.raises(RuntimeError):
                    asyncio.get_running_loop()
        """,
        mode,
    )
    result.assert_outcomes(passed=3, warnings=0)


def test_the_smallest_example_that_fails_is_told(inner: pytest.Pytester, mode: str) -> None:
    """It is shrunk as in any test of Hypothesis', and the failure is that of the test."""
    test = f"{MARK}\n{GIVEN}\nasync def test_it(number):\n    await asyncio.sleep(number)\n    assert now() < 3\n"
    result = outcome(inner, test, mode)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"E +assert 3.0 < 3", r"E +number=3,"])


def test_what_an_example_leaves_behind_fails_it(inner: pytest.Pytester, mode: str) -> None:
    """It is shrunk to the smallest example that leaves something; what the marker allows is none."""
    result = outcome(
        inner,
        """
        async def linger(number):
            if number > 4:
                asyncio.create_task(asyncio.sleep(60), name="lingerer")

        @pytest.mark.simulated_time
        @given(st.integers(0, 9))
        async def test_it(number):
            await linger(number)

        @pytest.mark.simulated_time(allow_leaks=["tasks"])
        @given(st.integers(0, 9))
        async def test_allowed(number):
            await linger(number)
        """,
        mode,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E*Leaked: left behind*", "E*task lingerer: sleep *", "E*number=5,"])


def test_examples_share_the_loop_of_their_fixtures(inner: pytest.Pytester, mode: str) -> None:
    """Async fixtures and `sim` are set up once, as Hypothesis warns: then time goes on from example to example."""
    result = outcome(
        inner,
        """
        times = []

        @pytest.fixture
        async def loop():
            yield asyncio.get_running_loop()

        @pytest.mark.simulated_time
        @settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(st.integers())
        async def test_it(loop, sim, number):
            assert loop is asyncio.get_running_loop()
            await sim.advance(seconds=1)
            times.append(now())

        def test_times():
            assert times[:3] == [1, 2, 3]
        """,
        mode,
    )
    result.assert_outcomes(passed=2)


def test_given_belongs_to_the_other_plugin_again(inner: pytest.Pytester, mode: str) -> None:
    """What Hypothesis calls is put back: one function runs here and, without the marker, with pytest-asyncio."""
    result = outcome(
        inner,
        """
        @given(st.integers())
        async def check(number):
            loops.add(type(asyncio.get_running_loop()).__name__)

        loops = set()

        class TestOurs:
            pytestmark = pytest.mark.simulated_time
            test_it = staticmethod(check)

        class TestTheirs:
            pytestmark = pytest.mark.asyncio
            test_it = staticmethod(check)

        def test_both():
            assert "SimulatedLoop" in loops and len(loops) == 2
        """,
        mode,
    )
    result.assert_outcomes(passed=3, errors=0)
