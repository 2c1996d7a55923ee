"""The state in a directory of RocksDB, for more than fits into memory (``stormlet[rocksdb]``).

From the ground up::

    failures    errors of RocksDB in sentences that name the directory and the way out
    database    one RocksDB: batches that are durable as a whole, and scans
    epoch_note  a note of the last durable epoch, by which damage is told from a loss of power
    layout      the keys and records, and the marks by which a directory is told from another
    backups     a copy of a directory while a run goes on
    reading     ``DirectoryReader``: all that a directory holds, beside a run that writes it
    renaming    what is kept under a component's id, to be forgotten or to go by another one
    directory   ``StateDirectory``: one run that owns a directory; begins with the theory of operation
"""

from __future__ import annotations
