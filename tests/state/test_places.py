"""File systems on which a state file could be damaged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from stormlet.errors import StateUnusable
from stormlet.state import places
from stormlet.state.places import file_system_of
from stormlet.state.sqlite.file import StateFile
from stormlet.state.stores import owned, reader

MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
//server/share /mnt/my\\040share cifs rw 0 0
/dev/sdc1 /mnt/twice ext4 rw 0 0
server:/twice /mnt/twice nfs rw 0 0
host /mnt/host 9p rw 0 0
user@server: /mnt/ssh fuse.sshfs rw 0 0
/dev/sdd1 /mnt/stick fuseblk rw 0 0
"""


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Linux says is mounted."""
    path = tmp_path / "mounts"
    path.write_text(MOUNTS)
    monkeypatch.setattr(places, "MOUNTS", path)
    return path


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/a.state", "ext4"),
        ("/home/me/a.state", "nfs4"),
        ("/homes/a.state", "ext4"),
        ("/home/local/a.state", "ext4"),
        ("/mnt/my share/a.state", "cifs"),
        ("/mnt/twice/a.state", "nfs"),
        ("/mnt/stick/a.state", "fuseblk"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    """It is that of the nearest mount above, the last one if there are two."""
    assert file_system_of(Path(path)) == kind


@pytest.mark.parametrize("kind", ["nfs", "cifs", "smb3", "9p", "fuse.sshfs"])
def test_network_file_systems_are_refused(mounts: Path, kind: str) -> None:
    """The kind is named, and nothing is written there."""
    path = mounts.with_name("words.state")
    mounts.write_text(f"{MOUNTS}server:/x {path.parent} {kind} rw 0 0\n")
    with pytest.raises(
        StateUnusable, match=f"{path} is on a network file system .{kind}., where it could be damaged"
    ):
        StateFile(path, "words")
    assert list(path.parent.iterdir()) == [mounts]


@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "fuseblk", "overlay", "fuse.mergerfs", "nfsd"])
def test_disks_of_this_machine_are_taken(mounts: Path, kind: str) -> None:
    """So are those in memory."""
    path = mounts.with_name("words.state")
    mounts.write_text(f"{MOUNTS}none {path.parent} {kind} rw 0 0\n")
    StateFile(path, "words").close()


def test_where_that_cannot_be_told(mounts: Path) -> None:
    """All are taken: only Linux says it."""
    mounts.unlink()
    StateFile(mounts.with_name("words.state"), "words").close()


@pytest.mark.parametrize("name", ["x" * 300, "nul\0", "half \ud800"])
@pytest.mark.parametrize("ending", ["state", "rocksdb"])
@pytest.mark.parametrize("opened", [partial(owned, topology="words"), reader])
def test_a_name_that_no_file_can_have_is_refused(
    opened: Callable[[Path], object], ending: str, name: str, tmp_path: Path
) -> None:
    """It is longer than file systems take, or no name to them."""
    path = tmp_path / f"{name}.{ending}"
    with pytest.raises(StateUnusable, match=rf"{ending}'? cannot be kept: .*; give another path$"):
        opened(path)
