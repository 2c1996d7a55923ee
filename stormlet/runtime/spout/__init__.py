"""Spout tasks.

::

    task        asks the source while there is room, settles outcomes, sleeps (law S1 to S7)
    feeds       generators, iterators, asynchronous ones, and the host as source
    spout_feed  instances of ``Spout`` classes
    collector   what ``next_tuple`` emits with
    host        messages that the host emits, each in its turn
    context     the parts of a task that its feed works with, and the wait for an asynchronous source
    switches    what the host and the collector have set for the task and its feed
    complete_latency  the time from the emit of a message to its ack
    tracker     the account of pending messages, and what becomes of each outcome (law N1)
    epoch_tracker  the same where messages belong to epochs: nobody hears of one before it is durable
    positions   positions of sources, as they are kept with an epoch
    replays     messages that wait for another attempt
    hand_overs  messages that are given up, on their way to the dead letters
    messages    values that the engine keeps until they are settled

Each of these knows only those below it. The task makes the others, calls them, and acts on what they return: it alone
sleeps, wakes, dies and is revived. The way of an outcome::

    acker -> task            verdicts came: settle what the host awaits, wake up for the rest
    task -> feed -> tracker  settle a chunk; each outcome is counted here, and a failed message replayed or given up
    feed -> user code        ``ack`` or ``fail`` of a ``Spout`` class
    task                     look after those who wait for room, or until everything is settled

User code of a spout runs in its task's coroutine, one call after another. What needs no user code goes on while an
asynchronous source is awaited.
"""
