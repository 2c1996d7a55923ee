"""The page "Testing your topology": the plugin's marker and options, and what there is without pytest."""

from __future__ import annotations

import asyncio
from textwrap import dedent

import pytest

from stormlet.testing import Simulation, run_simulated
from tests.testing.plugin_runs import run


def test_the_marker(inner: pytest.Pytester) -> None:
    """`@pytest.mark.simulated_time` marks an `async def` test, a class or, as `pytestmark`, a module of them. `seed=7`
    chooses the seed from which the topologies of the test take their randomness; it is 0 otherwise. Plain tests in a
    marked class or module are left alone.
    """
    inner.makepyfile(
        test_module=dedent("""
        import pytest
        pytestmark = pytest.mark.simulated_time

        async def test_of_the_module(sim):
            assert sim.seed == 0

        def test_plain():
            pass
        """)
    )
    source = """
        @pytest.mark.simulated_time(seed=7)
        async def test_marked(sim):
            assert sim.seed == 7

        @pytest.mark.simulated_time
        class TestAll:
            async def test_of_the_class(self, sim):
                assert sim.seed == 0

            def test_plain(self):
                pass
        """
    run(inner, source).assert_outcomes(passed=5)


def test_examples(inner: pytest.Pytester) -> None:
    """Under Hypothesis' `@given`, each example of an `async def` test has a loop of its own, and begins at time zero.
    Where the test asks for `sim` or for async fixtures, which are set up once, its examples share their loop.
    """
    source = """
        from hypothesis import HealthCheck, given, settings, strategies
        times = {}
        shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5)

        async def an_hour(name):
            times.setdefault(name, []).append(asyncio.get_running_loop().time())
            await asyncio.sleep(3600)

        @pytest.fixture
        async def fixture():
            return None

        @pytest.mark.simulated_time
        @given(strategies.integers())
        async def test_alone(number):
            await an_hour("alone")

        @pytest.mark.simulated_time
        @shared
        @given(strategies.integers())
        async def test_with_sim(sim, number):
            await an_hour("sim")

        @pytest.mark.simulated_time
        @shared
        @given(strategies.integers())
        async def test_with_fixture(fixture, number):
            await an_hour("fixture")

        def test_times():
            assert set(times["alone"]) == {0}
            assert times["sim"] == times["fixture"] == [0, 3600, 7200, 10800, 14400]
        """
    run(inner, source).assert_outcomes(passed=4)


def test_the_option(inner: pytest.Pytester) -> None:
    """With `simulated_time = true` in pytest's configuration, every `async def` test runs on simulated time that is not
    marked for pytest-asyncio, anyio or trio. Without it, tests that are not marked are left alone.
    """
    source = """
        async def test_taken():
            assert hasattr(asyncio.get_running_loop(), "simulated_time")

        @pytest.mark.asyncio
        async def test_of_the_other_plugin():
            if hasattr(asyncio.get_running_loop(), "simulated_time"):
                raise LookupError
        """
    left_alone = run(inner, source)
    left_alone.assert_outcomes(failed=1, passed=1)
    left_alone.stdout.fnmatch_lines(["*async def functions are not natively supported*"])
    run(inner, source, "-o", "simulated_time=true").assert_outcomes(passed=2)
    for mark in ("anyio", "trio"):  # whether that plugin is there or not
        theirs = source.replace("asyncio\n        async def test_of", f"{mark}\n        async def test_of")
        result = run(inner, theirs, "-o", "simulated_time=true", "-o", f"markers={mark}")
        result.stdout.no_fnmatch_line("E*LookupError*")


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_beside_pytest_asyncio(inner: pytest.Pytester, mode: str) -> None:
    """Beside pytest-asyncio, in strict and in auto mode, a marked test is ours, and so are its async fixtures, if they
    have function scope. A fixture may serve tests of both plugins.
    """
    source = """
        import pytest_asyncio

        @pytest_asyncio.fixture
        async def narrow():
            return asyncio.get_running_loop()

        @pytest_asyncio.fixture(scope="module", loop_scope="module")
        async def wide():
            return asyncio.get_running_loop()

        @pytest.mark.simulated_time
        async def test_ours(narrow, wide):
            assert narrow is asyncio.get_running_loop() is not wide
            assert hasattr(narrow, "simulated_time")

        @pytest.mark.asyncio
        async def test_theirs(narrow):
            assert narrow is asyncio.get_running_loop()
            assert not hasattr(narrow, "simulated_time")
        """
    run(inner, source, f"--asyncio-mode={mode}").assert_outcomes(passed=2)


def test_without_pytest() -> None:
    """Without pytest, `run_simulated(coroutine)` runs a coroutine on simulated time, and `Simulation()` in it is what
    `sim` is.
    """

    async def a_day() -> float:
        sim = Simulation()
        await asyncio.sleep(3600)
        await sim.advance(hours=23)
        return sim.now

    assert run_simulated(a_day()) == 86_400.0
