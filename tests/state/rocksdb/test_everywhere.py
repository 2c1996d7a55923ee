"""What holds of state holds in RocksDB: the law, and the command line, but for what is listed here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMANDS = [
    "tests/cli/running/test_fresh.py",
    *(
        str(each)
        for each in ROOT.glob("tests/cli/state/test_*.py")
        # An epoch is run again from an earlier one; a test of what may only be read is of one kind of state.
        if each.stem not in {"test_rocksdb", "test_rerunning", "test_read_only"}
    ),
]

DIFFERENT_LAW = {
    "test_K8_each_epoch_of_the_history_can_be_read": "the last epoch alone is kept",
    "test_K8_the_host_sees_what_is_durable": "a view ends with the run, as there is nothing in memory",
    "test_K8_what_is_durable_can_be_asked_for_after_the_end_of_the_loop": "a view ends with the run, too",
}
DIFFERENT_COMMANDS = {
    "test_a_copy_that_could_not_be_opened_is_not_made": "the names of a file of sqlite",
    "test_a_file_is_read_that_a_run_has": "one of its cases reads an earlier epoch",
    "test_a_file_says_all_that_it_has": "earlier epochs",
    "test_a_file_that_cannot_be_used_is_2_and_named": "files of sqlite are spoilt",
    "test_a_file_that_fits_is_said_to": "the bytes of a file are compared",
    "test_a_file_that_is_not_there_is_2": "files are named",
    "test_a_run_goes_on_from_where_the_file_was_rewound_to": "earlier epochs",
    "test_a_time_before_the_first_epoch_is_refused": "earlier epochs",
    "test_a_time_before_the_first_epoch_that_is_kept_is_refused": "earlier epochs",
    "test_an_earlier_epoch_is_listed_as_it_was": "earlier epochs",
    "test_an_epoch_that_is_not_kept_is_2_and_says_which_are": "earlier epochs",
    "test_an_empty_file_is_new": "a file is emptied",
    "test_a_file_whose_first_run_was_killed_as_it_made_it_is_new": "a file of sqlite is cut short",
    "test_nan_is_no_difference": "earlier epochs",
    "test_no_file_is_moved_that_is_in_use_or_of_others": "a directory is named, not a file",
    "test_one_epoch_is_compared_with_the_last": "earlier epochs",
    "test_rewinding_goes_back_to_an_epoch": "earlier epochs",
    "test_rewinding_names_the_tables_whose_rows_stay": "tables of users",
    "test_rewinding_to_a_time_takes_the_last_epoch_of_then": "earlier epochs",
    "test_scripts_get_records": "earlier epochs",
    "test_show_reads_an_earlier_epoch": "earlier epochs",
    "test_the_log_of_a_run_is_on_the_disk_too": "the log is a file beside it",
    "test_the_old_file_is_kept_under_a_name_with_the_time": "the name ends as before",
    "test_two_epochs_are_compared": "earlier epochs",
    "test_two_of_one_second_do_not_meet": "the name ends as before",
    "test_values_and_keys_move_no_cursor": "entries come in the order of their keys",
    "test_values_of_all_types_come_back": "keys of type Decimal are refused",
    "test_what_cannot_be_merged_is_refused": "the bytes of a file are compared",
    "test_where_there_is_no_way_back_nothing_changes": "earlier epochs",
}


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("tests", "different"),
    [
        (sorted(map(str, ROOT.glob("tests/law/test_[KX]*.py"))), DIFFERENT_LAW),
        (COMMANDS, DIFFERENT_COMMANDS),
    ],
    ids=["law", "commands"],
)
def test_what_holds_elsewhere_holds_here(tests: list[str], different: dict[str, str]) -> None:
    """All tests but those of which the reason is said."""
    plugin = ["-p", "tests.state.rocksdb.everywhere", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *plugin, "-m", "not slow", *tests]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert set(re.findall(r"^FAILED \S+::(\w+)", ended.stdout, re.MULTILINE)) == different.keys()
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed is not None
    assert int(passed[1]) > 90
