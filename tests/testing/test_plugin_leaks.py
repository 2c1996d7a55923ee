"""What a test on simulated time leaves behind fails it, by name."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.testing.plugin_runs import run

TOPOLOGIES = """
import threading
from stormlet import Bolt, Topology, TopologyCrashed

async def fed(bolt, *values, leave=lambda running: None, **options):
    topology = Topology("leaky", **{"message_timeout": 1.0, **options})
    lines = topology.spout("lines")
    topology.bolt("leak", bolt, lines.shuffle())
    async with topology.run() as running:
        for value in values:
            await running.emit(lines, value)
        await asyncio.sleep(5)
        leave(running)

class Holds(Bolt):
    def execute(self, tup, out):
        pass

class AcksTwice(Bolt):
    def execute(self, tup, out):
        out.ack(tup)
        out.ack(tup)

class Remembers(Bolt):
    def __init__(self):
        self.seen = []
    def execute(self, tup, out):
        self.seen.append(tup.value)
        out.emit(self.seen, anchors=tup)
        out.ack(tup)
"""

MARK = "\n@pytest.mark.simulated_time\n"


def outcome(inner: pytest.Pytester, test: str, *arguments: str, mark: str = MARK) -> pytest.RunResult:
    return run(inner, TOPOLOGIES + mark + dedent(test).strip(), *arguments)


def test_an_input_that_is_never_settled(inner: pytest.Pytester) -> None:
    """The bolt, its task and the tuple are named; an input that came twice is told once."""
    result = outcome(inner, "async def test_it():\n    await fed(Holds, 'a', 'a', 'b')")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "left behind (allow_leaks=?'inputs'? allows it):",
            "  topology 'leaky': leak?0? never acked or failed <Tuple 'a' from 'lines' (task 2)*> (2 times)",
            "  topology 'leaky': leak?0? never acked or failed <Tuple 'b' from 'lines' (task 2)*>",
        ],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("*plugin.py*")


def test_a_tree_that_is_left_open(inner: pytest.Pytester) -> None:
    """A message that has no outcome when the drain gives up is named with its spout, beside the input that is to
    blame."""
    result = outcome(
        inner, "async def test_it():\n    await fed(Holds, 'a', message_timeout=100.0, drain_timeout=1.0)"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "left behind (allow_leaks=?'inputs', 'trees'? allows it):",
            "  topology 'leaky': leak?0? never acked or failed <Tuple 'a' *",
            "  topology 'leaky': the tree of 'a', emitted by lines?0?, was still open at the end",
            "    'a' is held by leak?0?, delivered 6 s ago, by way of lines?0?: execute has returned without *",
        ],
        consecutive=True,
    )


def test_an_awaited_tree_that_times_out(inner: pytest.Pytester) -> None:
    """The error has notes that say what was outstanding."""
    result = outcome(
        inner,
        """
        async def test_it():
            topology = Topology("late")
            lines = topology.spout("lines")
            topology.bolt("leak", Holds, lines.shuffle())
            async with topology.run() as running:
                await (await running.emit(lines, "a"))
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E*TupleTimedOut: *", "E*'a' is held by leak?0?, delivered 45 s ago, by way of lines?0?*"]
    )


def test_every_open_tree_is_told(inner: pytest.Pytester) -> None:
    """Also where the spout could not be told any more, because its fail does not return."""
    result = outcome(
        inner,
        """
        async def test_it():
            topology = Topology("slow", message_timeout=None, drain_timeout=1.0)
            topology.bolt("leak", Holds, topology.spout("told", SlowToHear).shuffle())
            async with topology.run():
                await asyncio.sleep(1)
        """,
        mark=dedent("""
        from stormlet import Spout

        class SlowToHear(Spout):
            def __init__(self):
                self.left = ["a", "b"]
            def next_tuple(self, out):
                if self.left:
                    out.emit(self.left.pop(), message_id=len(self.left))
            async def fail(self, message_id, failure):
                await asyncio.sleep(1000)

        @pytest.mark.simulated_time(allow_leaks=["inputs"])
        """),
    )
    result.assert_outcomes(failed=1)
    for value in "ab":
        result.stdout.fnmatch_lines([f"*the tree of '{value}', emitted by told?0?*was still open at the end"])


def test_a_value_that_is_changed_after_its_emit(inner: pytest.Pytester) -> None:
    """Who emitted it, what it was and what it is now (law B10)."""
    result = outcome(inner, "async def test_it():\n    await fed(Remembers, 'a', 'b')")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "left behind (allow_leaks=?'values'? allows it):",
            "  topology 'leaky': leak?0? emitted ?'a'? on stream 'default', * afterwards to ?'a', 'b'?; *",
        ],
        consecutive=True,
    )


def test_an_exception_for_which_no_tuple_answers(inner: pytest.Pytester) -> None:
    """Who raised it, at which line, and on what; a marker allows it."""
    result = outcome(
        inner,
        """
        async def test_it():
            await fed(AcksTwice, "a", "b")

        @pytest.mark.simulated_time(allow_leaks=["errors"])
        async def test_allowed():
            await fed(AcksTwice, "a", "b")
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.re_match_lines(
        [
            r"left behind \(allow_leaks=\['errors'\] allows it\):",
            r"  topology 'leaky': leak\[0\] raised AlreadySettled\(.*\) in execute \(\w+\.py:\d+\) on 'a', .*2",
        ],
        consecutive=True,
    )


def test_the_hosts_values_are_looked_after_too(inner: pytest.Pytester) -> None:
    """A list that the test itself goes on to fill after it was emitted is named with its spout."""
    result = outcome(
        inner,
        """
        async def test_it():
            batch = [1]
            await fed(lambda value: None, batch, leave=lambda running: batch.append(2))
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  topology 'leaky': lines?0? emitted ?1? on * afterwards to ?1, 2?*"])


def test_a_task_that_a_bolt_has_left(inner: pytest.Pytester) -> None:
    """It is named with the task of the component that has started it, also by way of another one."""
    result = outcome(
        inner,
        """
        async def test_it():
            async def outer():
                started.append(asyncio.ensure_future(asyncio.sleep(1000)))

            async def starts(value):
                await asyncio.ensure_future(outer())

            started = []
            await fed(starts, 1)
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  task Task-*, started by Task-*, started by leaky/leak?0?: sleep (*"])


def test_a_thread_that_is_left(inner: pytest.Pytester) -> None:
    """A thread that goes on after its test is named; one that ends in that moment is not, nor is a daemon."""
    result = outcome(
        inner,
        """
        async def test_it():
            global go
            go = threading.Event()
            threading.Thread(target=go.wait, args=(20,), name="lingerer").start()
            threading.Thread(target=go.wait, args=(20,), name="daemon", daemon=True).start()
            threading.Thread(target=go.wait, args=(0.05,), name="quick").start()
            await asyncio.to_thread(int)

        def test_cleanup():
            go.set()
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["left behind (allow_leaks=?'threads'? allows it):", "  thread lingerer"])
    result.stdout.no_fnmatch_line("*thread quick*")
    result.stdout.no_fnmatch_line("*thread daemon*")


def test_a_failing_test_tells_its_own_failure_alone(inner: pytest.Pytester) -> None:
    """What it has left behind, a thread too, is not told beside it."""
    result = outcome(
        inner,
        """
        async def test_it():
            global go
            go = threading.Event()
            threading.Thread(target=go.wait, args=(20,)).start()
            raise LookupError("mine")

        def test_cleanup():
            go.set()
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E*LookupError: mine"])
    result.stdout.no_fnmatch_line("*left behind*")


@pytest.mark.parametrize(
    ("allowed", "passes"),
    [
        ("True", True),
        ("['inputs']", True),
        ("('trees', 'inputs')", True),
        ("['values']", False),
        ("False", False),
    ],
)
def test_what_is_allowed_is_no_leak(inner: pytest.Pytester, allowed: str, passes: bool) -> None:
    """The marker allows all kinds or some."""
    mark = f"\n@pytest.mark.simulated_time(allow_leaks={allowed})\n"
    result = outcome(inner, "async def test_it():\n    await fed(Holds, 'a')", mark=mark)
    result.assert_outcomes(passed=passes, failed=not passes)


def test_the_configuration_file_allows_kinds_for_all_tests(inner: pytest.Pytester) -> None:
    """What a marker says goes before it."""
    inner.makeini("[pytest]\nsimulated_time_allow_leaks = inputs trees\n")
    result = outcome(
        inner,
        """
        async def test_it():
            await fed(Holds, 'a')

        @pytest.mark.simulated_time(allow_leaks=False)
        async def test_strict():
            await fed(Holds, 'a')
        """,
        "-p",
        "no:asyncio",
    )
    result.assert_outcomes(passed=1, failed=1)


def test_an_unknown_kind_in_the_configuration_file(inner: pytest.Pytester) -> None:
    """Nothing runs, and the kinds are listed."""
    inner.makeini("[pytest]\nsimulated_time_allow_leaks = inputs treees\n")
    result = outcome(inner, "async def test_it():\n    pass", "-p", "no:asyncio")
    result.stderr.fnmatch_lines(
        ["*simulated_time_allow_leaks takes any of inputs, trees, values, errors, tasks, threads*"]
    )


@pytest.mark.parametrize(
    "test",
    [
        """
        async def test_it():
            with pytest.raises(LookupError):
                await fed(Holds, 'a', leave=lambda running: {}['nothing'])
        """,
        """
        async def test_it():
            def stop_twice(running):
                running.stop()
                running.stop()
            await fed(Holds, 'a', message_timeout=100.0, leave=stop_twice)
        """,
        """
        async def test_it():
            def boom(value):
                raise LookupError
            topology = Topology("crashes")
            lines = topology.spout("lines")
            topology.bolt("boom", boom, lines.shuffle(), on_error="stop")
            topology.bolt("leak", Holds, lines.shuffle())
            with pytest.raises(TopologyCrashed):
                async with topology.run() as running:
                    await running.emit(lines, "a")
                    await asyncio.sleep(5)
        """,
    ],
    ids=["exception", "second stop", "crash"],
)
def test_a_topology_that_was_cancelled_may_leave_its_inputs(inner: pytest.Pytester, test: str) -> None:
    """An exception, a second stop or a crash ends the work in the middle: that is no leak."""
    outcome(inner, test).assert_outcomes(passed=1)


def test_every_topology_of_a_test_is_looked_at(inner: pytest.Pytester) -> None:
    """Also the one that runs in a task of its own."""
    result = outcome(
        inner,
        """
        async def test_it():
            await asyncio.gather(fed(lambda value: None, "a"), asyncio.create_task(fed(Holds, "b")))
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*never acked or failed <Tuple 'b' *"])


def test_a_deadlock_names_the_inputs_that_are_held(inner: pytest.Pytester) -> None:
    """Without timeouts, waiting for a tree that nobody completes is a deadlock, and the bolt is named."""
    result = outcome(
        inner,
        """
        async def test_it():
            topology = Topology("stuck", message_timeout=None, drain_timeout=None, ackers=1)
            lines = topology.spout("lines")
            topology.bolt("leak", Holds, lines.shuffle())
            async with topology.run() as running:
                await (await running.emit(lines, "a"))
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*topology 'stuck': leak?0? never acked or failed <Tuple 'a' *"])
    result.stdout.fnmatch_lines(
        [
            "E*topology 'stuck': message of 'lines', 'a', is open for 0 s *",
            "E*'a' is held by leak?0?, delivered 0 s ago, by way of lines?0?*",
        ]
    )


def test_many_leaks_are_told_in_few_lines(inner: pytest.Pytester) -> None:
    """Twenty lines and the number of the rest."""
    result = outcome(inner, "async def test_it():\n    await fed(Holds, *range(50))")
    assert sum("never acked" in line for line in result.outlines) == 20
    result.stdout.fnmatch_lines(["  and 30 more"])


ALL = "[pytest]\nsimulated_time = true\n"


def test_all_tests_can_be_on_simulated_time(inner: pytest.Pytester) -> None:
    """With the option, every async test is ours that is not marked for another plugin; plain tests stay plain."""
    inner.makeini(ALL + "asyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n")
    result = run(
        inner,
        """
        import unittest
        from hypothesis import given, strategies

        @pytest.fixture
        async def five():
            yield 5

        async def test_ours(sim, five):
            await sim.advance(days=five)

        @given(strategies.integers())
        async def test_examples(number):
            assert asyncio.get_running_loop().time() == 0

        @pytest.mark.asyncio
        async def test_theirs():
            assert not hasattr(asyncio.get_running_loop(), "simulated_time")

        def test_plain():
            pass

        class TestCase(unittest.IsolatedAsyncioTestCase):
            async def test_its_own(self):
                assert not hasattr(asyncio.get_running_loop(), "simulated_time")
        """,
    )
    result.assert_outcomes(passed=5)


def test_two_plugins_cannot_both_have_all_tests(inner: pytest.Pytester) -> None:
    """With pytest-asyncio's auto mode beside the option, nothing runs, and the message names both."""
    inner.makeini(ALL)
    result = run(inner, "async def test_it():\n    pass", "--asyncio-mode=auto")
    result.stderr.fnmatch_lines(
        ["*simulated_time = true and asyncio_mode = auto both claim every async test*"]
    )
