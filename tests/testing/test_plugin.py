"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import os
import sys
from textwrap import dedent

import pytest

from tests.testing.plugin_runs import LOAD, run


def test_a_test_on_simulated_time(inner: pytest.Pytester) -> None:
    """A marked test runs on the simulated loop, from time zero, with seed zero."""
    result = run(
        inner,
        """
        from stormlet.testing import SimulatedLoop

        @pytest.mark.simulated_time
        async def test_sleep():
            loop = asyncio.get_running_loop()
            assert isinstance(loop, SimulatedLoop)
            assert (loop.time(), loop.seed) == (0.0, 0)
            await asyncio.sleep(1e6)
            assert loop.time() == 1e6
        """,
    )
    result.assert_outcomes(passed=1)


def test_the_seed_of_the_marker(inner: pytest.Pytester) -> None:
    """The seed given to the closest marker is the loop's."""
    result = run(
        inner,
        """
        pytestmark = pytest.mark.simulated_time(seed=3)

        async def test_three():
            assert asyncio.get_running_loop().seed == 3

        @pytest.mark.simulated_time(seed=7)
        async def test_seven():
            assert asyncio.get_running_loop().seed == 7
        """,
    )
    result.assert_outcomes(passed=2)


def test_one_task_with_the_tests_name(inner: pytest.Pytester) -> None:
    """The body is one task, named as pytest names the test, parameters included."""
    result = run(
        inner,
        """
        @pytest.mark.simulated_time
        @pytest.mark.parametrize("number", [1, 2])
        async def test_name(number):
            assert asyncio.current_task().get_name() == f"test_name[{number}]"
            assert asyncio.all_tasks() == {asyncio.current_task()}
        """,
    )
    result.assert_outcomes(passed=2)


def test_fixtures_and_methods(inner: pytest.Pytester) -> None:
    """Fixtures, parameters, defaults and methods work as in any test; fixtures not asked for are not passed."""
    result = run(
        inner,
        """
        @pytest.fixture(autouse=True)
        def unasked():
            return None

        @pytest.fixture
        def five():
            return 5

        @pytest.mark.simulated_time
        class TestMethods:
            @pytest.mark.parametrize("factor", [2])
            async def test_method(self, five, factor, extra=1):
                assert five * factor + extra == 11

            @staticmethod
            async def test_static(five):
                assert five == 5
        """,
    )
    result.assert_outcomes(passed=2)


def test_beside_pytest_asyncio_in_strict_mode(inner: pytest.Pytester) -> None:
    """Each plugin runs the tests with its own marker, without a warning."""
    result = run(
        inner,
        """
        @pytest.mark.asyncio
        async def test_real():
            assert not hasattr(asyncio.get_running_loop(), "simulated_time")

        @pytest.mark.simulated_time
        async def test_simulated():
            assert asyncio.get_running_loop().simulated_time

        def test_plain():
            pass
        """,
    )
    result.assert_outcomes(passed=3, warnings=0)


def test_beside_pytest_asyncio_in_auto_mode(inner: pytest.Pytester) -> None:
    """Where pytest-asyncio takes every async test, a marked one is still ours."""
    result = run(
        inner,
        """
        async def test_real():
            assert not hasattr(asyncio.get_running_loop(), "simulated_time")

        @pytest.mark.simulated_time
        async def test_simulated():
            assert asyncio.get_running_loop().simulated_time
        """,
        "--asyncio-mode=auto",
    )
    result.assert_outcomes(passed=2, warnings=0)


def test_an_unmarked_async_test_is_left_alone(inner: pytest.Pytester) -> None:
    """Without the marker nothing is ours: pytest says that nobody runs the test."""
    result = run(inner, "async def test_unmarked():\n    pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])


def test_failures_skips_and_expected_failures(inner: pytest.Pytester) -> None:
    """Assertions are explained, and skip and xfail mean what they mean elsewhere."""
    result = run(
        inner,
        """
        pytestmark = pytest.mark.simulated_time

        async def test_fails():
            await asyncio.sleep(1)
            assert asyncio.get_running_loop().time() == 2.0

        async def test_skips():
            pytest.skip("not now")

        @pytest.mark.xfail(raises=LookupError, strict=True)
        async def test_expected():
            raise LookupError
        """,
    )
    result.assert_outcomes(failed=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["E*assert 1.0 == 2.0"])


def test_a_test_that_exits_fails_as_such(inner: pytest.Pytester) -> None:
    """It is no deadlock, and its fixtures come to their end."""
    result = run(
        inner,
        """
        ended = []

        @pytest.fixture
        async def fixture():
            yield
            await asyncio.sleep(1)
            ended.append(True)

        @pytest.mark.simulated_time
        async def test_exit(fixture):
            raise SystemExit(3)

        def test_after():
            assert ended
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E*SystemExit: 3"])


def test_an_interrupt_within_a_test_ends_the_run(inner: pytest.Pytester) -> None:
    """Ctrl-C means all tests, also where the code of one is at work."""
    source = """
        import asyncio
        import pytest

        @pytest.mark.simulated_time
        async def test_interrupted():
            raise KeyboardInterrupt

        def test_never():
            assert False
        """
    inner.makepyfile(dedent(source))
    result = inner.runpytest_inprocess(*LOAD, no_reraise_ctrlc=True)
    assert result.ret is pytest.ExitCode.INTERRUPTED
    assert "failed" not in result.stdout.str()


def test_a_deadlock_fails_the_test(inner: pytest.Pytester) -> None:
    """A test that waits for nothing fails at once and says where it waits."""
    result = run(
        inner,
        """
        @pytest.mark.simulated_time
        async def test_stuck():
            await asyncio.Event().wait()
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"E .*Deadlock: deadlock at simulated time 0 s",
            r"E +test_stuck: .*test_stuck \(\w+\.py:\d+\) > Event",
        ]
    )


@pytest.mark.parametrize("mode", ["--asyncio-mode=strict", "--asyncio-mode=auto"])
def test_plain_tests_of_a_marked_module_are_left_alone(inner: pytest.Pytester, mode: str) -> None:
    """Also those of a class in it, of unittest and of the documentation, as other plugins leave them."""
    result = run(
        inner,
        """
        import unittest
        pytestmark = pytest.mark.simulated_time

        def documented():
            '''
            >>> 1 + 1
            2
            '''

        def test_plain():
            pass

        class TestPlain:
            @pytest.mark.parametrize("number", [1, 2])
            def test_plain(self, number):
                with pytest.raises(RuntimeError):
                    asyncio.get_running_loop()

            async def test_simulated(self):
                assert asyncio.get_running_loop().simulated_time

        class Case(unittest.TestCase):
            def test_it(self):
                pass
        """,
        "--doctest-modules",
        mode,
    )
    result.assert_outcomes(passed=6, warnings=0)


@pytest.mark.parametrize("mode", ["--asyncio-mode=strict", "--asyncio-mode=auto"])
def test_plain_tests_of_a_marked_class_are_left_alone(inner: pytest.Pytester, mode: str) -> None:
    """Its async ones are on simulated time."""
    result = run(
        inner,
        """
        @pytest.mark.simulated_time
        class TestMixed:
            def test_plain(self):
                with pytest.raises(RuntimeError):
                    asyncio.get_running_loop()

            async def test_simulated(self, sim):
                await sim.advance(days=1)
        """,
        mode,
    )
    result.assert_outcomes(passed=2, warnings=0)


NOT_ASYNC = [
    "@pytest.mark.simulated_time\ndef test_it(fixture):\n    pass\n",
    "@pytest.mark.simulated_time\nasync def test_it(fixture):\n    yield\n",
    """
    @pytest.mark.parametrize("one", [pytest.param(1, marks=pytest.mark.simulated_time)])
    def test_it(one, fixture):
        pass
    """,
    """
    import unittest
    @pytest.mark.simulated_time
    class Case(unittest.IsolatedAsyncioTestCase):
        async def test_it(self):
            pass
    """,
]


@pytest.mark.parametrize("source", NOT_ASYNC, ids=["function", "generator", "parameter", "async unittest"])
def test_a_marker_on_no_async_function(inner: pytest.Pytester, source: str) -> None:
    """A marker of a test's own, or over an async one, that cannot be obeyed is an error before anything is set up, and
    says what to write."""
    result = run(inner, "@pytest.fixture\ndef fixture():\n    raise LookupError\n" + dedent(source))
    result.assert_outcomes(errors=1)
    result.stdout.re_match_lines(
        [
            r"test_\w+\.py::(Case::)?test_it(\[1\])? is marked simulated_time, but it is not an `async def` test func"
        ]
    )
    result.stdout.no_fnmatch_line("*LookupError*")
    result.stdout.no_fnmatch_line("*plugin.py*")


@pytest.mark.parametrize(
    "arguments",
    [
        "7",
        "sed=7",
        "seed=None",
        "seed=True",
        "seed='7'",
        "seed=1, x=2",
        "allow_leaks=1",
        "allow_leaks='tasks'",
        "allow_leaks=['x']",
    ],
)
def test_wrong_arguments_of_the_marker(inner: pytest.Pytester, arguments: str) -> None:
    """The marker takes an integer seed by name, and says so."""
    source = f"@pytest.mark.simulated_time({arguments})\nasync def test_it():\n    pass\n"
    result = run(inner, source)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*::test_it: write @pytest.mark.simulated_time, or with options, as in *(seed=7, allow_leaks=*)"]
    )


def test_a_leaked_task_fails_the_test(inner: pytest.Pytester) -> None:
    """Every task that is pending after the test is named, with where it waits, and then cancelled."""
    result = run(
        inner,
        """
        cancelled = []

        async def linger():
            try:
                await asyncio.sleep(60)
            finally:
                cancelled.append(1)

        async def spin():
            while True:
                await asyncio.sleep(0)

        @pytest.mark.simulated_time
        async def test_leaks():
            tasks = [asyncio.create_task(linger(), name="lingerer"), asyncio.create_task(spin(), name="spinner")]
            await asyncio.sleep(0)

        def test_cancelled():
            assert cancelled == [1]
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.re_match_lines(
        [
            r"left behind \(allow_leaks=\['tasks'\] allows it\):",
            r"  task lingerer: linger \(\w+\.py:\d+\) > sleep \(tasks\.py:\d+\)",
            r"  task spinner: spin \(",
        ],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("*plugin.py*")


def test_what_ends_in_the_last_instant_is_no_leak(inner: pytest.Pytester) -> None:
    """Tasks that were cancelled, or need no more time to end, are given the turns of the loop for it."""
    result = run(
        inner,
        """
        async def cleanup():
            try:
                await asyncio.sleep(60)
            finally:
                for _ in range(10):
                    await asyncio.sleep(0)

        @pytest.mark.simulated_time
        async def test_ends():
            task = asyncio.create_task(cleanup())
            await asyncio.sleep(1)
            task.cancel()
            other = asyncio.create_task(asyncio.sleep(0))
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_failure_goes_before_its_leaks(inner: pytest.Pytester) -> None:
    """A test that fails by itself reports that, and its tasks are only cancelled."""
    result = run(
        inner,
        """
        @pytest.mark.simulated_time
        async def test_fails():
            task = asyncio.create_task(asyncio.sleep(60))
            await asyncio.sleep(1)
            raise LookupError("mine")
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*LookupError: mine"])
    result.stdout.no_fnmatch_line("*left behind*")


def test_the_marker_is_listed(inner: pytest.Pytester) -> None:
    """`pytest --markers` explains the marker."""
    result = inner.runpytest_inprocess(*LOAD, "--markers")
    result.stdout.fnmatch_lines(
        ["@pytest.mark.simulated_time(seed=0, allow_leaks=False): run this `async def` test on *"]
    )


def test_the_plugin_loads_no_loop(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody's pytest run imports the plugin, so importing it loads nothing of what it may need later."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    code = "import sys, stormlet.testing.plugin; print('stormlet.testing.loop' in sys.modules)"
    assert pytester.run(sys.executable, "-c", code).outlines == ["False"]
