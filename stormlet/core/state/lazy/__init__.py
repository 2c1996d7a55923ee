"""Keyed state that is not in memory: entries are read from the store when they are asked for.

Theory of operation
-------------------
The overlay of the open attempt is that of any other table. Below it are, instead of all that is committed, what the
open epoch and the one before have read or written, and the store. So what is in memory is bounded by what two epochs
touch.

Between the seal of an epoch and the moment at which it is durable the store may have it or not: it is being written.
What it changes is among what the last epoch has written, which is asked before the store. So both give the same.

Reading order::

    ambiguous    types of keys that a store could not tell apart
    reading      the entries of a state in a store, as the state is declared
    value_table  one value for each key
    maps         the entries of one map or list, as far as they are known
    map_table    a map or a list for each key
    sweeping     entries that are too old, found bit by bit (law K6)
    states       one state in all tasks
"""

from __future__ import annotations
