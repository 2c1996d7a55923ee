"""The tests that ``just fast`` leaves out, and the guard that keeps the others in process.

A test is slow if it starts a process, waits for real time, or takes seconds. It is named here, by folder, file or
function, instead of by a mark where it stands, so that one page shows what the fast run does not hold.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent

SLOW = frozenset(
    {
        "bench",
        "benchmarks",
        "brokers",
        "both_ways/test_reading.py",
        "epochs/test_kill.py",
        "epochs/test_kills.py",
        "epochs/test_planted_bugs.py",
        "cli/test_app.py",
        "cli/test_check_engine.py::test_neither_pyspark_nor_java_is_needed",
        "cli/running/test_endings.py",
        "cli/running/test_loops.py",
        "cli/running/test_presenter.py",
        "cli/test_help.py",
        "cli/test_graph.py::test_a_terminal_that_cannot_show_the_marks",
        "cli/test_graph.py::test_every_format_goes_to_output_or_file",
        "cli/test_graph.py::test_the_layout_is_the_same_every_time",
        "cli/test_interrupts.py",
        "exports/test_grafana.py::test_the_command_prints_the_dashboard",
        "cli/running/test_live.py",
        "cli/test_new.py",
        "cli/test_output.py",
        "cli/test_errors.py::test_nothing_foreign_reaches_the_terminal_raw",
        "cli/test_run.py::test_a_run_loads_only_what_it_needs",
        "cli/test_run.py::test_the_module_runs_as_a_program",
        "cli/test_run_options.py",
        "cli/test_simulate.py",
        "cli/test_soak.py",
        "connect/http/test_post.py",
        "connect/http/test_route.py",
        "connect/kafka/test_conformance.py",
        "connect/kafka/test_exactly_once.py",
        "connect/kafka/test_kills.py",
        "connect/kafka/test_produce.py",
        "connect/kafka/test_security.py",
        "connect/kafka/test_session.py",
        "connect/kafka/test_topology.py",
        "connect/nats/test_conformance.py",
        "connect/nats/test_kills.py",
        "connect/nats/test_login.py",
        "connect/nats/test_publish.py",
        "connect/nats/test_start.py",
        "connect/nats/test_stream.py",
        "connect/nats/test_topology.py",
        "connect/postgres",
        "connect/rabbitmq/test_conformance.py",
        "connect/rabbitmq/test_connection.py",
        "connect/rabbitmq/test_kills.py",
        "connect/rabbitmq/test_publish.py",
        "connect/rabbitmq/test_queue.py",
        "connect/rabbitmq/test_topology.py",
        "connect/redis",
        "core/state/test_states.py::test_any_sequence_of_changes_ends_as_in_a_dict",
        "core/state/test_states.py::test_any_sequence_of_changes_of_maps_ends_as_in_a_dict",
        "core/state/test_states.py::test_the_log_stays_within_three_times_the_state",
        "connect/test_files.py",
        "connect/test_files_conformance.py",
        "connect/test_kestrel.py",
        "connect/test_planted_bugs.py",
        "connect/test_price.py",
        "connect/test_soak.py",
        "conformance/test_fsshelter.py::test_FS_H3_steady_state_memory_does_not_grow",
        "core/test_keys.py::test_every_process_agrees",
        "examples",
        "fuzz",
        "law/test_N2_engine_errors.py::test_N2_no_message_slips_whatever_call_of_the_engine_raises",
        "law/test_groupings_fields.py::test_fields_the_same_key_goes_to_the_same_task_in_every_process",
        "law/test_L16_repeatability.py::test_L16_one_seed_gives_one_run_in_any_process",
        "readme/explaining_page/test_since_when_and_which_way.py",
        "readme/explaining_page/test_why_is_it_stuck.py",
        "readme/test_blocks.py",
        "readme/test_state_page.py",
        "readme/test_testing_page.py",
        "readme/test_tutorial.py",
        "readme/testing_page/test_a_whole_topology_on_given_values.py",
        "readme/testing_page/test_at_full_load_for_minutes.py",
        "readme/testing_page/test_bugs_of_your_own.py",
        "readme/testing_page/test_seeds_and_faults.py",
        "readme/testing_page/test_the_world_outside.py",
        "readme/testing_page/test_time_in_your_hands.py::test_an_endless_source",
        "readme/what_happens_when/test_messages.py::test_when_a_traceback_is_kept",
        "readme/what_happens_when/test_the_process.py",
        "runtime/run/test_bottlenecks.py",
        "runtime/test_nothing_is_taken_over.py",
        "runtime/test_year.py",
        "spark",
        "state/test_kills.py",
        "state/test_power.py",
        "state/rocksdb/test_everywhere.py",
        "state/rocksdb/test_refusals.py::test_a_run_of_another_process",
        "state/test_refusals.py::test_a_run_of_another_process",
        "state/test_refusals.py::test_a_process_that_a_run_has_forked_holds_no_file",
        "test_acceleration.py",
        "test_exports.py::test_a_first_run_imports_nothing",
        "test_exports.py::test_importing_stormlet_loads_no_edge",
        "test_exports.py::test_what_needs_asyncio_is_loaded_when_it_is_asked_for",
        "testing/chaos/test_broken_engines.py",
        "testing/chaos/test_explanations.py",
        "testing/chaos/test_lives.py",
        "testing/chaos/test_planted_bugs.py",
        "testing/chaos/test_simulating.py",
        "testing/soaking",
        "testing/test_livelock.py",
        "testing/test_outside.py",
        "test_mutants.py::test_a_mutant_is_applied_to_a_copy_and_taken_back",
        "test_type_hints.py",
        "typing",
        "ui/test_server.py",
        "ui/test_page.py",
        "ui/test_rest.py",
        "ui/test_snapshot.py::test_it_opens_in_a_browser_until_ctrl_c",
    }
)
"""Paths from here: a folder, a file, or one function of a file."""


def is_slow(item: pytest.Item) -> bool:
    """Listed itself, by its file or by a folder above it; or runs pytest inside of itself."""
    path = item.path.relative_to(HERE)
    function = f"{path.as_posix()}::{getattr(item, 'originalname', item.name)}"
    return "pytester" in getattr(item, "fixturenames", ()) or function in SLOW or is_slow_path(path)


def is_slow_path(path: Path) -> bool:
    """A file or folder of which nothing is fast; the path is relative to this folder."""
    return any(each.as_posix() in SLOW for each in (path, *path.parents))


@contextmanager
def in_process(item: pytest.Item) -> Iterator[None]:
    """Have the test fail if it starts a process."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError(f"{item.nodeid} starts a process: list it in tests/slow.py")

    start = subprocess.Popen.__init__
    subprocess.Popen.__init__ = refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        subprocess.Popen.__init__ = start  # type: ignore[method-assign]
