"""Stores of epochs: what is durable of a topology, and the way back to it.

They keep the records of :mod:`stormlet.core.state.commits`, and know nothing else of topologies. From the ground up::

    retention  the epochs that can still be read after a commit
    refusals   sentences that all stores share
    memory     ``MemoryStore``: dicts, for topologies without ``state=`` and for simulated time
    places     paths that cannot hold a state file, network file systems among them
    claims     one run at a time
    entries    the entries of a state as basic values, and as JSON lines
    interfaces of stores that have a place, beside a run and in the hands of one
    sqlite/    ``StateFile``: a file of sqlite
    rocksdb/   ``StateDirectory``: a directory of RocksDB, whose entries are not in memory
    stores     the store of a run, by what the topology says of its place
"""

from __future__ import annotations
