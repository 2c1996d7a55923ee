"""Stores of epochs: what is durable of a topology, and the way back to it.

They keep the records of :mod:`stormlet.core.state.commits`, and know nothing else of topologies. From the ground up::

    retention  the epochs that can still be read after a commit
    refusals   sentences that all stores share
    memory     ``MemoryStore``: dicts, for topologies without ``state=`` and for simulated time
    places     paths that cannot hold a state file, network file systems among them
    failures   errors of sqlite in sentences that name the file and the way out
    database   one connection: transactions, and rows with seals
    layout     the tables, their rows, and the marks by which a file is told from another
    backups    a copy of a file while a run goes on
    reading    ``StateReader``: all that a file holds, beside a run that writes it
    entries    the entries of a state as basic values, and as JSON lines
    rewinding  the way back to an epoch before the last one
    renaming   what is kept under a component's id, to be forgotten or to go by another one
    file       ``StateFile``: one run that owns a file and commits epochs to it; begins with the theory of operation
    stores     the store of a run, by what the topology says of its place
    user_tables   tables of users in the same file, written by the commit of an epoch
    sqlite_table  ``SqliteTable``, by which a topology declares one
"""

from __future__ import annotations
