"""Async fixtures of tests on simulated time: one task for all, beside the other plugins."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.testing.plugin_runs import run

MODES = ["--asyncio-mode=strict", "--asyncio-mode=auto"]
pytestmark = pytest.mark.parametrize("mode", MODES)

TOPOLOGY = """
from stormlet import Topology

def topology(bolt, **options):
    made = Topology("made", **options)
    made.lines = made.spout("lines")
    made.upper = made.bolt("upper", bolt, made.lines.shuffle())
    return made
"""


def test_a_running_topology_is_a_fixture(inner: pytest.Pytester, mode: str) -> None:
    """The block is entered before the test and left after it, in the test's own task."""
    result = run(
        inner,
        TOPOLOGY
        + dedent("""
        seen = []

        @pytest.fixture
        async def running():
            entered = asyncio.current_task()
            made = topology(str.upper)
            async with made.run() as running:
                yield made, running
            seen.append(asyncio.current_task() is entered)
            seen.append(running.health().state.value)

        @pytest.mark.simulated_time
        async def test_upper(running):
            made, running = running
            tree = await running.emit(made.lines, "a", collect=made.upper)
            assert await tree == ["A"]
            seen.append(asyncio.current_task().get_name())

        def test_left():
            assert seen == ["test_upper", True, "stopped"]
        """),
        mode,
    )
    result.assert_outcomes(passed=2, warnings=0)


def test_fixtures_of_all_kinds(inner: pytest.Pytester, mode: str) -> None:
    """Coroutine fixtures, async generators, plain ones between them, methods, parameters: set up in order, ended in the
    reverse order, all on one loop and in one context."""
    result = run(
        inner,
        """
        from contextvars import ContextVar
        events, name = [], ContextVar("name", default="nobody")

        @pytest.fixture(params=[1, 2])
        async def first(request):
            name.set("first")
            await asyncio.sleep(5)
            yield asyncio.get_running_loop(), request.param
            await asyncio.sleep(1)
            events.append(("first", asyncio.get_running_loop().time()))

        @pytest.fixture
        def between(first):
            yield first[1] * 10
            events.append("between")

        @pytest.fixture
        async def second(between):
            return between + 1

        @pytest.mark.simulated_time
        class TestThem:
            @pytest.fixture
            async def mine(self, second):
                self.second = second
                yield self
                events.append("mine")

            async def test_them(self, first, mine, sim):
                assert mine is self
                assert self.second == first[1] * 10 + 1
                assert first[0] is asyncio.get_running_loop()
                assert sim.now == 5.0
                assert name.get() == "first"
                events.clear()

            def teardown_method(self):
                assert events[:2] == ["mine", "between"]

        def test_the_end():
            assert events == ["mine", "between", ("first", 6.0)]
        """,
        mode,
    )
    result.assert_outcomes(passed=3, warnings=0)


def test_each_plugin_has_the_fixtures_of_its_tests(inner: pytest.Pytester, mode: str) -> None:
    """One fixture serves tests of both plugins, each on the loop of the test."""
    result = run(
        inner,
        """
        import pytest_asyncio

        @pytest_asyncio.fixture
        async def loop_of_fixture():
            yield asyncio.get_running_loop()

        @pytest.mark.simulated_time
        async def test_ours(loop_of_fixture):
            assert loop_of_fixture is asyncio.get_running_loop()
            assert loop_of_fixture.simulated_time

        @pytest.mark.asyncio
        async def test_theirs(loop_of_fixture):
            assert loop_of_fixture is asyncio.get_running_loop()
            assert not hasattr(loop_of_fixture, "simulated_time")
        """,
        mode,
    )
    result.assert_outcomes(passed=2, warnings=0)


def test_a_fixture_that_fails_is_an_error(inner: pytest.Pytester, mode: str) -> None:
    """Before its yield it keeps the test from running; after it, the test has passed and its teardown has not."""
    result = run(
        inner,
        """
        @pytest.fixture
        async def early():
            raise LookupError("early")

        @pytest.fixture
        async def late():
            yield
            raise LookupError("late")

        @pytest.mark.simulated_time
        async def test_early(early):
            raise AssertionError("not reached")

        @pytest.mark.simulated_time
        async def test_late(late):
            pass
        """,
        mode,
    )
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["E*LookupError: early", "E*LookupError: late"])
    result.stdout.no_fnmatch_line("*not reached*")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if False: yield", "fixture 'odd' did not yield a value"),
        ("yield; yield", "fixture 'odd' yielded more than once"),
    ],
)
def test_a_fixture_yields_once(inner: pytest.Pytester, mode: str, body: str, message: str) -> None:
    """Anything else is an error that names the fixture."""
    source = f"@pytest.fixture\nasync def odd():\n    {body}\n"
    result = run(inner, source + "@pytest.mark.simulated_time\nasync def test_it(odd):\n    pass\n", mode)
    result.assert_outcomes(errors=1, passed=int("more" in message))
    result.stdout.fnmatch_lines([f"E*ValueError: {message}"])


def test_a_crash_of_the_fixtures_topology_is_told(inner: pytest.Pytester, mode: str) -> None:
    """The test is cancelled and says why; leaving the block raises the crash itself."""
    result = run(
        inner,
        TOPOLOGY
        + dedent("""
        @pytest.fixture
        async def running():
            made = Topology("made")
            made.lines = made.spout("lines")
            made.bolt("boom", boom, made.lines.shuffle(), on_error="stop")
            async with made.run() as running:
                yield made, running

        def boom(value):
            raise LookupError(value)

        @pytest.mark.simulated_time
        async def test_it(running):
            await running[1].emit(running[0].lines, "a")
            await asyncio.sleep(60)
        """),
        mode,
    )
    result.assert_outcomes(failed=1, errors=1)
    crash = "topology 'made' crashed: execute of boom*LookupError('a')"
    result.stdout.fnmatch_lines([f"E*TopologyCrashed: {crash}"])
    result.stdout.fnmatch_lines([f"E*cancelled, because {crash}"])


def test_leaks_of_a_fixture_are_an_error_of_the_teardown(inner: pytest.Pytester, mode: str) -> None:
    """What the test has left behind is known when its fixtures have ended, and then told."""
    result = run(
        inner,
        TOPOLOGY
        + dedent("""
        from stormlet import Bolt

        class Forgets(Bolt):
            def execute(self, tup, out):
                pass

        @pytest.fixture
        async def running():
            made = topology(Forgets, message_timeout=1.0)
            async with made.run() as running:
                yield made, running

        @pytest.mark.simulated_time
        async def test_it(running):
            await running[1].emit(running[0].lines, "a")
        """),
        mode,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["  topology 'made': upper?0? never acked or failed <Tuple 'a' from 'lines'*"]
    )


def test_fixtures_of_a_wider_scope_are_left_alone(inner: pytest.Pytester, mode: str) -> None:
    """A loop lives as long as its test, so an async fixture of the module is the other plugin's."""
    result = run(
        inner,
        """
        import pytest_asyncio

        @pytest_asyncio.fixture(scope="module", loop_scope="module")
        async def wide():
            return asyncio.get_running_loop()

        @pytest.mark.simulated_time
        async def test_it(wide):
            assert not hasattr(wide, "simulated_time")
        """,
        mode,
    )
    result.assert_outcomes(passed=1)


def test_sim_is_for_tests_on_simulated_time(inner: pytest.Pytester, mode: str) -> None:
    """Another test that asks for it is told what to write."""
    result = run(inner, "def test_it(sim):\n    pass\n", mode)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*::test_it asks for the fixture sim*mark it with @pytest.mark.simulated_time"]
    )
