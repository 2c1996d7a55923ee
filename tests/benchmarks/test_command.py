"""The command: which workloads run, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from benchmarks import catalogue
from benchmarks.catalogue import PEERS, WORKLOADS, usual_names
from benchmarks.command import main
from stormlet.bench.workload import Workload
from stormlet.cli.bench import Measuring


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The workloads that the command would have run, with only the queues and streamz installed of the peers."""
    chosen: list[str] = []

    def measure(options: Measuring, workloads: Sequence[Workload], module: str) -> dict[str, object]:
        chosen.extend(each.name for each in workloads)
        return {}

    monkeypatch.setattr(Measuring, "measure", measure)
    monkeypatch.setattr(
        Workload, "available", property(lambda each: each.needs not in ("bytewax", "pathway"))
    )
    return chosen


def test_all_that_is_installed_runs(ran: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The fixed set, with the peers that are there; the others are named."""
    assert main([]) == 0
    assert set(ran) == {*usual_names(), "queues", "streamz"}
    assert "bytewax (pip install bytewax), pathway (pip install pathway)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["acked"], ["acked"]),
        (["streamz", "acked", "acked"], ["acked", "streamz"]),
        (["acked", "loops", "--against", "queues", "streamz"], ["loops", "acked", "queues", "streamz"]),
        (["--against", "none", "--rounds", "2"], [*usual_names()]),
    ],
)
def test_names_choose(ran: list[str], arguments: list[str], names: list[str]) -> None:
    """In the order of the catalogue, once each; peers only if they are asked for."""
    assert main(arguments) == 0
    assert ran == names


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["loop"], "there is no workload 'loop'; there are loops, bare, acked"),
        (
            ["--against", "storm"],
            "there is no peer 'storm'; there are queues, bytewax, streamz, pathway, none",
        ),
        (["--against", "bytewax"], "bytewax is not installed: pip install bytewax"),
        (["pathway"], "workload 'pathway' needs pathway, which is not installed here"),
    ],
)
def test_what_cannot_be_run_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs, with the way out."""
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_what_cannot_run_here_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, which does not tell how much memory a process has."""
    monkeypatch.setattr(Workload, "available", property(lambda each: each.needs != "resource"))
    assert "flat" not in usual_names()


def test_every_peer_has_workloads() -> None:
    """And every workload of a peer belongs to one that ``--against`` knows."""
    of_peers = [name for peer in PEERS for name in catalogue.names_of_peer(peer)]
    assert sorted(of_peers) == sorted(name for name, each in WORKLOADS.items() if each.kind == "peer")


def test_a_quick_run_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """``--quick`` is one short round."""
    assert main(["loops", "acked", "--quick", "--loop", "uvloop"]) == 0
    shown = capsys.readouterr().out
    assert "; one round in which" in shown
    assert "uvloop" in shown
    assert "nested loops" in shown


def test_the_text_of_an_option_opens_with_a_noun_or_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """Never with a question word, as in "Whom to compare with"."""
    main(["--help"])
    openings = re.findall(r"^  \S.*?  +(\w+)", capsys.readouterr().out, re.MULTILINE)
    assert openings
    assert {"How", "What", "When", "Where", "Whether", "Which", "Who", "Whom", "Why"} & {*openings} == set()
