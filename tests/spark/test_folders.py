"""Directories of Spark's file systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stormlet.files import sync
from stormlet.spark.files import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_directory_has_one_name(spark: SparkSession, tmp_path: Path) -> None:
    """Whether it is given with its file system or without."""
    assert str(Folder(spark, str(tmp_path))) == str(Folder(spark, f"file:{tmp_path}")) == f"file:{tmp_path}"


def test_what_is_in_it(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing, if it is not there."""
    assert Folder(spark, str(tmp_path / "none")).names() == ()
    (tmp_path / "a").mkdir()
    assert Folder(spark, str(tmp_path)).names() == ["a"]


def test_files_and_the_way_to_them_are_synced(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is below, and each directory whose names lead there."""
    synced = list[Path]()
    monkeypatch.setattr("stormlet.spark.files.sync", synced.append)
    place = tmp_path / "out" / "source=s" / "epoch=1"
    (place / "part=0").mkdir(parents=True)
    (place / "part=0" / "file").touch()
    Folder(spark, str(tmp_path / "out")).sync("source=s", "epoch=1")
    assert set(synced) == {
        place / "part=0" / "file",
        place / "part=0",
        place,
        place.parent,
        tmp_path / "out",
    }


def test_a_file_is_synced_before_it_has_its_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a loss of power might leave an empty one."""
    synced = list[Path]()
    monkeypatch.setattr("stormlet.spark.files.sync", synced.append)
    Folder(spark, str(tmp_path)).write("record", b"content")
    assert synced[:2] == [tmp_path / "record.new", tmp_path]


def test_a_disk_that_fails(tmp_path: Path) -> None:
    """It is told, rather than taken for done."""
    sync(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync(tmp_path / "none")
