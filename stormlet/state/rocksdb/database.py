"""One RocksDB: batches that are durable as a whole, and scans. Keys and values are bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    WriteBatch,
)

from stormlet.state.rocksdb.failures import unusable

CACHE: Final = 128 << 20
"""Bytes of blocks that were read lately, the indexes and filters of files among them."""
BITS_A_KEY: Final = 10
"""Of the filters that say without a read that a file does not have a key: 1 % of them err."""
OPEN_FILES: Final = 500
"""A run has no more than that open at once, as most systems allow a process 1024."""


class Database:
    """Methods block, and raise :class:`~stormlet.errors.StateUnusable`. Any thread may call them."""

    def __init__(self, path: Path, beside: Path | None = None, links: Path | None = None) -> None:
        """Open a directory to write it, and make it if it is missing. With ``beside``, an empty directory, read it
        while somebody else may write it, as it is now; by way of ``links``, a directory of links to its files, if there
        is one."""
        self.path = path
        access = AccessType.read_write() if beside is None else AccessType.secondary(str(beside))
        # A reader must have all files open: the writer removes what it has no more use for.
        options = _options(OPEN_FILES if beside is None else -1)
        try:
            self._rdict = Rdict(str(links or path), options, access_type=access)
        except Exception as error:
            raise unusable(path, error) from error

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None if there is none."""
        try:
            return cast("bytes | None", self._rdict.get(key))
        except Exception as error:
            raise unusable(self.path, error) from error

    def scan(self, prefix: bytes = b"", begin: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the keys that begin so, with their values, in order, as they are when it begins; ``begin``
        leaves out smaller ones."""
        # Without the bound that RocksDB itself would have: rocksdict does not keep its bytes alive.
        try:
            found = self._rdict.iter()
            found.seek(max(prefix, begin))
            while found.valid() and (key := cast("bytes", found.key())).startswith(prefix):
                yield key, cast("bytes", found.value())
                found.next()
            found.status()  # an error looks like the end
        except Exception as error:
            raise unusable(self.path, error) from error

    def last(self, prefix: bytes) -> tuple[bytes, bytes] | None:
        """The last key that begins so, with its value; None if there is none."""
        try:
            found, end = self._rdict.iter(), end_of(prefix)
            found.seek_for_prev(end)
            if found.valid() and found.key() == end:
                found.prev()
            found.status()
            if not found.valid() or not (key := cast("bytes", found.key())).startswith(prefix):
                return None
            return key, cast("bytes", found.value())
        except Exception as error:
            raise unusable(self.path, error) from error

    def write(self, batch: WriteBatch) -> None:
        """Make a batch durable, as a whole. The caller does not use it again."""
        try:
            self.put_in_log(batch)
            self.sync_log()
        except Exception as error:
            raise unusable(self.path, error) from error

    def put_in_log(self, batch: WriteBatch) -> None:
        """Write a batch, without a sync: that would hold up all threads of Python for as long as it takes."""
        self._rdict.write(batch)

    def sync_log(self) -> None:
        """Make what was written durable; other threads go on meanwhile."""
        self._rdict.flush_wal(sync=True)

    def close(self) -> None:
        """Let go of the directory."""
        try:
            self._rdict.close()
        except Exception as error:
            failure = unusable(self.path, error)
            if "is closed" not in str(failure):
                raise failure from error


def new_batch() -> WriteBatch:
    """Return an empty batch."""
    return WriteBatch(raw_mode=True)


def end_of(prefix: bytes) -> bytes:
    """Return the first bytes behind all that begin so."""
    short = prefix.rstrip(b"\xff")
    return short[:-1] + bytes([short[-1] + 1])


def _options(open_files: int) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_max_open_files(open_files)
    options.set_keep_log_file_num(2)
    options.set_compression_type(DBCompressionType.lz4())
    # Up to what a loss of power has left of the last write; see epoch_note for damage that looks the same.
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(CACHE))
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    blocks.set_bloom_filter(BITS_A_KEY, False)
    options.set_block_based_table_factory(blocks)
    return options
