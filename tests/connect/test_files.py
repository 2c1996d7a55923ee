"""Sources and sinks of files: rotations, truncations, bookmarks, and what is left by a kill."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import msgspec
import pytest

from stormlet import StartFailed, Topology
from stormlet.connect import files
from stormlet.connect.files.bookmark import Mark
from stormlet.errors import BrokerRefused, EndOfStream, InvalidConfiguration
from tests.connect.file_reader import reading

# ruff: noqa: ASYNC240 - these tests do to files what others do meanwhile
ROOT = Path(__file__).parents[2]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The path of a log."""
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "app.log"


def add(path: Path, *lines: str, end: str = "\n") -> None:
    """Append lines, each with this end."""
    with path.open("a") as file:
        file.write("".join(f"{line}{end}" for line in lines))


def numbered(first: int, count: int) -> list[str]:
    """Lines by which a file is known: some bytes long, and none like another."""
    return [f"line {number} {'x' * 60}" for number in range(first, first + count)]


def tail(log: Path, **options: Any) -> files.Tail[Any]:
    """A tail that looks often."""
    options = {"poll": 0.01, "linger": 0.05, **options}
    return files.Tail(log, bookmark=log.parent.parent / "mark", as_=str, **options)


@pytest.mark.asyncio
async def test_lines_come_as_they_are_written(log: Path) -> None:
    """A half line waits for its end; an empty one is none."""
    add(log, "a", "", "b")
    add(log, "ha", end="")
    async with reading(tail(log)) as reader:
        assert await reader.lines(2) == ["a", "b"]
        assert await reader.nothing()
        add(log, "lf")
        assert await reader.lines(1) == ["half"]


@pytest.mark.asyncio
async def test_a_bookmark_goes_no_further_than_what_is_done(log: Path) -> None:
    """The next run begins with the first line that was not."""
    add(log, "a", "b", "c", "d")
    async with reading(tail(log)) as reader:
        await reader.lines(4)
        await reader.settle(0, 2, 3)
    async with reading(tail(log)) as reader:
        assert await reader.lines(3) == ["b", "c", "d"]
        await reader.settle()
    async with reading(tail(log)) as reader:
        assert await reader.nothing()


@pytest.mark.asyncio
async def test_a_file_that_is_renamed_is_read_to_its_end(log: Path) -> None:
    """Also what is written to it a moment later, and then the new one."""
    add(log, *numbered(0, 2))
    async with reading(tail(log)) as reader:
        await reader.lines(2)
        old = log.open("a")
        log.rename(log.with_name("app.log.1"))
        add(log, *numbered(3, 2))
        old.write(f"{numbered(2, 1)[0]}\n")
        old.close()
        assert await reader.lines(3) == numbered(2, 3)


@pytest.mark.asyncio
async def test_a_renamed_file_may_be_written_to_for_a_while(log: Path) -> None:
    """Its writer learns of it later."""
    add(log, "a")
    async with reading(tail(log, linger=3.0)) as reader:
        await reader.lines(1)
        old = log.rename(log.with_name("app.log.1"))
        add(log, "new")
        assert await reader.nothing()
        add(old, "late")
        assert await reader.lines(2) == ["late", "new"]


@pytest.mark.asyncio
async def test_the_last_line_of_a_renamed_file_needs_no_end(log: Path) -> None:
    """Nobody will write it any more."""
    add(log, "a", "b", end="\n")
    add(log, "half", end="")
    async with reading(tail(log)) as reader:
        await reader.lines(2)
        log.rename(log.with_name("app.log.1"))
        add(log, "new")
        assert await reader.lines(2) == ["half", "new"]


@pytest.mark.asyncio
async def test_files_that_were_rotated_while_it_was_away_are_read_in_order(log: Path) -> None:
    """First the rest of the one that it was at."""
    add(log, *numbered(0, 3))
    async with reading(tail(log)) as reader:
        await reader.lines(3)
        await reader.settle(0)
    log.rename(log.with_name("app.log.2"))
    add(log, *numbered(3, 2))
    log.rename(log.with_name("app.log.1"))
    add(log, *numbered(5, 2))
    async with reading(tail(log)) as reader:
        assert await reader.lines(6) == numbered(1, 6)
        await reader.settle()
    async with reading(tail(log)) as reader:
        assert await reader.nothing()


@pytest.mark.asyncio
async def test_files_that_were_there_before_it_began_are_not_read(log: Path) -> None:
    """Neither at the first start nor later."""
    add(log.with_name("app.log.1"), *numbered(0, 3))
    add(log, *numbered(3, 2))
    for _ in range(2):
        async with reading(tail(log)) as reader:
            assert await reader.lines(2) == numbered(3, 2)


@pytest.mark.asyncio
async def test_a_file_that_is_copied_and_emptied_is_read_in_its_copy(log: Path) -> None:
    """As logrotate does with `copytruncate`."""
    add(log, *numbered(0, 4))
    async with reading(tail(log)) as reader:
        await reader.lines(2)
        await reader.settle(0)
        log.with_name("app.log.1").write_bytes(log.read_bytes())
        log.write_text("")
        add(log, *numbered(4, 1))
        assert await reader.lines(3) == numbered(2, 3)
        await reader.settle()
    async with reading(tail(log)) as reader:
        assert await reader.nothing()


@pytest.mark.asyncio
async def test_a_file_that_was_copied_and_emptied_while_it_was_away_is_not_read_again(log: Path) -> None:
    """The copy begins as the bookmark says; only what is new is read."""
    add(log, *numbered(0, 3))
    async with reading(tail(log)) as reader:
        await reader.lines(3)
        await reader.settle(0, 1)
    log.with_name("app.log.1").write_bytes(log.read_bytes())
    log.write_text("")
    add(log, *numbered(3, 1))
    async with reading(tail(log)) as reader:
        assert await reader.lines(2) == numbered(2, 2)


@pytest.mark.asyncio
async def test_a_file_that_is_emptied_begins_anew(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also if it is as long as before, or longer, and what it was is said to be gone."""
    add(log, *numbered(0, 2))
    async with reading(tail(log)) as reader:
        await reader.lines(2)
        log.write_text("")
        add(log, *numbered(7, 3))
        assert await reader.lines(3) == numbered(7, 3)
        await reader.settle()
    async with reading(tail(log)) as reader:
        assert await reader.nothing()
    assert "was emptied" in caplog.text


@pytest.mark.asyncio
async def test_an_inode_that_another_file_has_got_says_nothing(log: Path) -> None:
    """Its first bytes differ, so it is read from its beginning."""
    add(log, *numbered(0, 5))
    async with reading(tail(log)) as reader:
        await reader.lines(5)
        await reader.settle()
    with log.open("r+") as file:  # the same inode
        file.write("\n".join(numbered(10, 6)))
        file.write("\n")
    async with reading(tail(log)) as reader:
        assert await reader.lines(6) == numbered(10, 6)


@pytest.mark.asyncio
async def test_a_tail_may_begin_at_the_end(log: Path) -> None:
    """Without a bookmark."""
    add(log, "old")
    async with reading(tail(log, start="end")) as reader:
        assert await reader.nothing()
        add(log, "new")
        assert await reader.lines(1) == ["new"]


@pytest.mark.asyncio
async def test_a_file_that_is_not_there_yet_is_waited_for(log: Path) -> None:
    """A folder that is not there fails the start."""
    async with reading(tail(log)) as reader:
        assert await reader.nothing()
        add(log, "a")
        assert await reader.lines(1) == ["a"]
    with pytest.raises(BrokerRefused, match="there is no folder"):
        async with reading(tail(log.parent / "nowhere" / "x")):
            pass


@pytest.mark.asyncio
async def test_a_bookmark_has_one_reader(log: Path) -> None:
    """And one task."""
    add(log, "a")
    async with reading(tail(log)):
        with pytest.raises(BrokerRefused, match="has the bookmark"):
            async with reading(tail(log)):
                pass
    with pytest.raises(BrokerRefused, match="parallelism must be 1"):
        async with reading(tail(log), parallelism=2):
            pass


@pytest.mark.asyncio
async def test_a_bookmark_that_is_none_fails_the_start(log: Path) -> None:
    """It is not overwritten."""
    (log.parent.parent / "mark").write_text("{")
    with pytest.raises(BrokerRefused, match="is no bookmark"):
        async with reading(tail(log)):
            pass


class Row(msgspec.Struct):
    """A row of a CSV file."""

    what: str
    cents: int


def folder(log: Path, **options: Any) -> files.Lines[Any]:
    """The files of a folder."""
    return files.Lines(
        log.parent, bookmark=log.parent.parent / "mark", **{"as_": str, "poll": 0.01, **options}
    )


@pytest.mark.asyncio
async def test_the_files_of_a_folder_are_read_by_their_names(log: Path) -> None:
    """Each once, to the end, with a last line that has no end; then it is over, in the next run too."""
    add(log.with_name("b"), "3", "4", end="\n")
    add(log.with_name("a"), "1", end="\n")
    add(log.with_name("a"), "2", end="")
    async with reading(folder(log)) as reader:
        assert await reader.lines(4) == ["1", "2", "3", "4"]
        await reader.settle()
        with pytest.raises(EndOfStream):
            await reader.session.receive(10, 1)
    add(log.with_name("c"), "5")
    async with reading(folder(log)) as reader:
        assert await reader.lines(1) == ["5"]


@pytest.mark.asyncio
async def test_a_folder_may_be_followed(log: Path) -> None:
    """Files that come later are read."""
    async with reading(folder(log, follow=True)) as reader:
        assert await reader.nothing()
        add(log.with_name("a.part"), "1")
        assert await reader.nothing()
        log.with_name("a.part").rename(log.with_name("a.jsonl"))
        assert await reader.lines(1) == ["1"]


@pytest.mark.asyncio
async def test_rows_of_a_csv_file_are_records(log: Path) -> None:
    """A cell may have a line end, and numbers are numbers; a run goes on in the middle."""
    log.write_bytes(b'what,cents\r\n"a ""big""\ntable",12\r\nlamp,3\r\n')
    source = folder(log, format="csv", as_=Row)
    async with reading(source) as reader:
        await reader.lines(2)
        assert [source.decode(each) for each in reader.got] == [Row('a "big"\ntable', 12), Row("lamp", 3)]
        await reader.settle(0)
    async with reading(source) as reader:
        assert await reader.lines(1) == ['{"what":"lamp","cents":"3"}']


@pytest.mark.asyncio
async def test_written_files_are_complete(log: Path) -> None:
    """A value that cannot be a line is refused, and the others are written."""
    topology = Topology("writing", max_spout_pending=3, message_timeout=None)
    values: Sequence[Any] = [{"a": 1}, "text", b"two\nlines", object(), *range(5)]
    sink = files.Write[Any](log.parent, size=3, within=0.05)
    topology.bolt("write", sink, topology.spout("values", values).shuffle())
    letters: list[Any] = []
    async with topology.run(dead_letters=letters.append) as run:
        await run.finished()
    written = sorted(log.parent.iterdir())
    assert all(each.suffix == ".jsonl" for each in written)
    assert sorted(b"".join(each.read_bytes() for each in written).split()) == sorted(
        [b'{"a":1}', b"text", b"0", b"1", b"2", b"3", b"4"]
    )
    assert len(letters) == 2


@pytest.mark.asyncio
async def test_a_folder_in_the_place_of_the_file_fails_the_start(tmp_path: Path) -> None:
    """It would be lost and found again, several times in a second."""
    topology = Topology("reading")
    topology.spout("lines", files.Tail[str](tmp_path, bookmark=tmp_path / "bookmark", as_=str))
    with pytest.raises(StartFailed, match="is a folder: Tail reads one file"):
        async with topology.run():
            pass


@pytest.mark.asyncio
async def test_a_folder_that_is_not_there_fails_the_start(tmp_path: Path) -> None:
    """Of a sink, too."""
    topology = Topology("writing")
    topology.bolt("write", files.Write[str](tmp_path / "none"), topology.spout("values", ["a"]).shuffle())
    with pytest.raises(StartFailed, match="there is no folder"):
        async with topology.run():
            pass


@pytest.mark.parametrize(
    ("address", "way_out"),
    [
        ("file:///var/log", "write '/var/log'"),
        ("FILE://localhost/my%20logs", "write '/my logs'"),
        ("file://server/log", "have them mounted there"),
        ("file://[log", "have them mounted there"),
        ("s3://bucket/log", "have them mounted there"),
    ],
)
def test_an_address_is_no_path(address: str, way_out: str, tmp_path: Path) -> None:
    """It would be taken for a folder called ``file:`` in the one where the process runs."""
    for make in (
        lambda: files.Lines(address, bookmark=tmp_path / "bookmark"),
        lambda: files.Lines(tmp_path, bookmark=address),
        lambda: files.Tail(address, bookmark=tmp_path / "bookmark"),
        lambda: files.Write(address),
    ):
        with pytest.raises(InvalidConfiguration, match=f"is an address, .*: {way_out}"):
            make()


@pytest.mark.parametrize("address", ["sftp://ann:s3cret@host/log", "https://host/log?signature=s3cret"])
def test_an_address_that_is_refused_shows_no_password(address: str) -> None:
    """Nor a signature, which is as good as one (law R9)."""
    with pytest.raises(InvalidConfiguration, match="host/log' is an address") as refused:
        files.Write(address)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("path", ["C://logs", "logs/a://b", "logs:/a"])
def test_a_path_with_a_colon_is_a_path(path: str) -> None:
    """One letter is a drive of Windows and no scheme."""
    assert files.Write(path).folder == Path(path).absolute()


@pytest.mark.asyncio
async def test_a_log_that_is_rotated_before_the_first_line_is_done_is_not_forgotten(log: Path) -> None:
    """The bookmark names it from the start."""
    add(log, *numbered(0, 2))
    async with reading(tail(log)):
        pass
    log.rename(log.with_name("app.log.1"))
    add(log, *numbered(2, 1))
    async with reading(tail(log)) as reader:
        assert await reader.lines(3) == numbered(0, 3)


@pytest.mark.asyncio
async def test_a_log_that_comes_and_is_rotated_after_the_first_start_is_read(log: Path) -> None:
    """Though nothing was there when the source began."""
    async with reading(tail(log)):
        pass
    add(log, *numbered(0, 2))
    log.rename(log.with_name("app.log.1"))
    async with reading(tail(log)) as reader:
        assert await reader.lines(2) == numbered(0, 2)
        assert await reader.nothing()


@pytest.mark.asyncio
async def test_a_file_that_was_read_and_compressed_does_not_hide_the_next(log: Path) -> None:
    """Which was renamed meanwhile, too."""
    add(log, *numbered(0, 2))
    async with reading(tail(log, linger=0.2)) as reader:
        await reader.lines(2)
        log.rename(log.with_name("app.log.1.gz"))
        add(log, *numbered(2, 2))
        log.rename(log.with_name("app.log.2"))
        add(log, *numbered(4, 1))
        assert await reader.lines(3) == numbered(2, 3)


@pytest.mark.asyncio
async def test_a_renamed_file_is_read_once_though_nothing_is_done(log: Path) -> None:
    """However often there is another."""
    add(log, *numbered(0, 1))
    async with reading(tail(log)) as reader:
        for number in range(4):
            assert await reader.lines(1) == numbered(number, 1)
            log.rename(log.with_name(f"app.log.{number}"))
            add(log, *numbered(number + 1, 1))
        assert await reader.lines(1) == numbered(4, 1)
        assert await reader.nothing()


@pytest.mark.asyncio
async def test_a_bookmark_that_would_be_read_fails_the_start(log: Path) -> None:
    """As a file of the folder."""
    source = files.Lines(log.parent, bookmark=log.parent / "mark", as_=str)
    with pytest.raises(BrokerRefused, match="put it elsewhere"):
        async with reading(source):
            pass


@pytest.mark.asyncio
async def test_empty_lines_at_the_end_are_done_with_the_last_line(log: Path) -> None:
    """So that a file is not read again for them."""
    log.with_name("a").write_text("1\n\n\n")
    async with reading(folder(log)) as reader:
        await reader.lines(1)
        with pytest.raises(EndOfStream):
            await reader.session.receive(10, 1)
        await reader.settle()
    (mark,) = msgspec.json.decode((log.parent.parent / "mark").read_bytes(), type=list[Mark])
    assert mark.offset == 4


PROGRAM = """
import asyncio, sys
from pathlib import Path
from stormlet import Topology
from stormlet.connect import files

async def main(folder):
    topology = Topology("copy", max_spout_pending=100)
    log = files.Tail(folder / "in" / "log", bookmark=folder / "mark", as_=str, settle_every=0.02)
    lines = topology.spout("lines", log)
    topology.bolt("write", files.Write[str](folder / "out", size=50, within=0.01), lines.shuffle())
    async with topology.run():
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


def started(folder: Path) -> subprocess.Popen[str]:
    """A process that copies a log."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"  # what is rotated before its first start is not read
    return process


def log_for(seconds: float, log: Path, first: int, random: Random) -> int:
    """Write numbered lines for so long, and rotate at random; return the number of the next line."""
    until = monotonic() + seconds
    while monotonic() < until:
        add(log, *numbered(first, 20))
        first += 20
        sleep(0.01)
        if random.random() < 0.05:
            log.rename(log.with_name(f"log.{first}"))
    return first


@pytest.mark.timeout(300)
def test_a_process_that_is_killed_loses_no_line(tmp_path: Path) -> None:
    """While the log is rotated; what is there twice is what was pending, and one settling interval."""
    log, random, count = tmp_path / "in" / "log", Random(3), 0
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for _ in range(10):
        with started(tmp_path) as run:
            count = log_for(random.uniform(0.0, 1.0), log, count, random)
            run.kill()
        count = log_for(0.1, log, count, random)
    with started(tmp_path) as run:
        deadline = monotonic() + 150
        while len(set(written(tmp_path / "out"))) < count and monotonic() < deadline:
            sleep(0.2)
        run.kill()
    copies = Counter(written(tmp_path / "out"))
    print(f"{copies.total() - count} of {count} lines twice after 10 kills")
    assert set(copies) == set(numbered(0, count))
    assert copies.total() - count <= 11 * 200


def written(folder: Path) -> list[str]:
    """All lines of a folder's files that are complete."""
    return [line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
