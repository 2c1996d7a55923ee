"""The trial of a write: which errors say something of the sink. Spark's own are in the tests of the writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from stormlet import InvalidTopology
from stormlet.spark.sink.trial import check_write


class Writer:
    """One whose write ends with an error of these words."""

    def __init__(self, words: str) -> None:
        self.words = words

    def save(self, path: str) -> None:
        raise PySparkException(self.words)


def trial(words: str, folder: Path) -> None:
    check_write("write[0]: out", cast("Any", Writer(words)), "parquet", cast("Any", None), folder)


@pytest.mark.parametrize(
    "words", ["ParentNotDirectoryException: /tmp/x", "AccessControlException: no", "SecurityException: file"]
)
def test_what_says_nothing_of_the_sink(words: str, tmp_path: Path) -> None:
    """A cluster may let nobody write to files of the driver."""
    trial(words, tmp_path)


def test_what_each_write_would_end_with(tmp_path: Path) -> None:
    """The sink and the way out are named."""
    with pytest.raises(
        InvalidTopology, match=r"^write\[0\]: out can take no row: .*the codec .*; change format="
    ):
        trial("the codec zap is not available", tmp_path)
