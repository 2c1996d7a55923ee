"""The epoch in the live view, in the lines of progress and in the closing summary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stormlet.cli import main
from stormlet.cli.running.live import closing_summary, live_view
from stormlet.cli.running.presenter import progress_line
from stormlet.report.statistics import EpochStatistics, StateStatistics
from tests.cli.figures import FRAME
from tests.cli.state.kept import FLOW, flow

STATES = {f"count.s{number}": StateStatistics(1_234_567, 45_600_000) for number in range(6)}
EPOCH = EpochStatistics(120, 0.4, 312, STATES)
KEEPING = replace(FRAME, epoch=EPOCH)

COMMITS = """
from stormlet import Committer
class Keep(Committer[str]):
    def commit(self, epoch, rows):
        pass
topology = Topology("keep")
topology.bolt("keep", Keep, topology.spout("words", list("abcab")).global_())
"""


def lines(frame: object, width: int = 80) -> list[str]:
    return [line.plain for line in live_view(frame, (), "", width, 24)]  # type: ignore[arg-type]


def test_the_view_has_the_epoch_and_the_first_states() -> None:
    """With the age of the last commit, and what is withheld until the next one."""
    shown = lines(KEEPING)
    assert "epoch 120 committed 0.4 s ago, 312 messages wait for the next" in shown
    assert [line for line in shown if line.startswith("count.s")] == [
        f"count.s{number}: 1.23 M entries, about 45.6 MB" for number in range(4)
    ]


def test_the_view_stays_within_the_terminal() -> None:
    """However narrow it is."""
    assert max(map(len, lines(KEEPING, 20))) <= 20


def test_the_summary_has_all_states_exactly() -> None:
    """One line each."""
    shown = [line.plain for line in closing_summary(KEEPING, (), None)]
    assert [line for line in shown if line.startswith("count.s")] == [
        f"count.s{number}: 1,234,567 entries, about 45.6 MB" for number in range(6)
    ]


def test_lines_of_progress_have_the_epoch() -> None:
    """And no more, as they are many."""
    assert progress_line(KEEPING).endswith("tuples/s; epoch 120 committed 0.4 s ago")


@pytest.mark.parametrize(
    ("epoch", "line"),
    [
        (EpochStatistics(0, None, 0, {}), "no epoch committed yet"),
        (EpochStatistics(1, 61.0, 1, {}), "epoch 1 committed 1 min 01 s ago, 1 message waits for the next"),
    ],
)
def test_the_epoch_is_in_words(epoch: EpochStatistics, line: str) -> None:
    """Before the first one, and for a single message."""
    assert line in lines(replace(FRAME, epoch=epoch))


def test_a_single_entry_is_one() -> None:
    """As in all other lines."""
    epoch = EpochStatistics(1, 0.0, 0, {"count.total": StateStatistics(1, 4)})
    assert "count.total: 1 entry, about 4 B" in lines(replace(FRAME, epoch=epoch))


def test_an_epoch_that_ends_with_the_process_is_not_committed() -> None:
    """The messages that wait for its end are named, and the sizes of its states."""
    volatile = replace(
        FRAME, epoch=EpochStatistics(7, 0.4, 312, {"count.s": StateStatistics(1, 1)}, is_kept=False)
    )
    shown = lines(volatile)
    assert "312 messages wait for the end of the epoch" in shown
    assert "count.s: 1 entry, about 1 B" in shown
    assert not any("committed" in line for line in [*shown, progress_line(volatile)])


def test_names_of_states_move_no_cursor() -> None:
    """Their bolts have any id."""
    epoch = EpochStatistics(1, 0.0, 0, {"co\x1b[2Junt\n.total": StateStatistics(1, 1)})
    assert all(line.isprintable() for line in lines(replace(FRAME, epoch=epoch)))


def test_without_state_nothing_is_said() -> None:
    """Its messages belong to no epochs."""
    assert not any("epoch" in line for line in [*lines(FRAME), progress_line(FRAME)])


def test_a_run_ends_with_its_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    """In the summary."""
    flow(FLOW)
    assert main(["run", "flow.py"]) == 0
    shown = capsys.readouterr().err.splitlines()
    assert any(line.startswith("epoch 1 committed 0.") for line in shown)
    assert "count.total: 3 entries, about 9 B" in shown


def test_a_run_that_keeps_nothing_ends_without_a_commit(capsys: pytest.CaptureFixture[str]) -> None:
    """Its states are gone with it."""
    flow(FLOW.replace(', state="counts.state"', ""))
    assert main(["run", "flow.py"]) == 0
    shown = capsys.readouterr().err
    assert "committed" not in shown
    assert "count.total: 3 entries, about 9 B" in shown


def test_a_run_with_a_committer_ends_with_the_epoch_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Its sink keeps it."""
    flow(COMMITS)
    assert main(["run", "flow.py"]) == 0
    shown = capsys.readouterr().err.splitlines()
    assert any(line.startswith("epoch 1 committed 0.") for line in shown)
