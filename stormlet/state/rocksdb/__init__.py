"""The state in a directory of RocksDB, for more than fits into memory (``stormlet[rocksdb]``). From the ground up::

failures   errors of RocksDB in sentences that name the directory and the way out
database   one RocksDB: batches that are durable as a whole, and scans
layout     the keys and records, and the marks by which a directory is told from another
reading    ``DirectoryReader``: all that a directory holds, beside a run that writes it
backups    a copy of a directory while a run goes on
directory  ``StateDirectory``: one run that owns a directory and commits epochs to it; begins with the theory of
operation
renaming   what is kept under a component's id, to be forgotten or to go by another one
"""

from __future__ import annotations
