"""The state in one file of sqlite.

From the ground up::

    failures     errors of sqlite in sentences that name the file and the way out
    read_only    the options by which sqlite reads a file that may only be read
    database     one connection: transactions, and rows with seals
    layout       the tables, their rows, and the marks by which a file is told from another
    backups      a copy of a file while a run goes on
    reading      ``StateReader``: all that a file holds, beside a run that writes it
    rewinding    the way back to an epoch before the last one
    renaming     what is kept under a component's id, to be forgotten or to go by another one
    file         ``StateFile``: one run that owns a file and commits epochs to it; begins with the theory of operation
    user_tables  tables of users in the same file, written by the commit of an epoch
    table        ``SqliteTable``, by which a topology declares one
"""

from __future__ import annotations
