"""Spout tasks.

::

    task        asks the source while there is room, settles outcomes, sleeps (law S1 to S7)
    feed        what a source is for its task, and the wait for an asynchronous one
    feeds       generators, iterators, asynchronous ones, and the host as source
    spout_feed  instances of ``Spout`` classes
    collector   what ``next_tuple`` emits with
    messages    values that the engine keeps until they are settled
    tracker     the account of pending messages, and what becomes of each outcome (law N1)
    replays     messages that wait for another attempt, or for the dead letter sink
    host        messages that the host emits, each in its turn
    owners      what the parts above may ask of their task

User code of a spout runs in its task's coroutine, one call after another. What needs no user code goes on while an
asynchronous source is awaited.
"""
