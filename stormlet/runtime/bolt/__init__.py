"""Bolt tasks.

::

    task        takes inputs from the inbox, in batches, and calls the methods of a bolt's life
    calls       the task of a bolt with ``concurrency``: coroutines that call user code beside each other
    intake      the work at hand of a task: the inputs of a batch, and the calls between two inputs
    worker      base of the workers: one input at a time, with its context, its exceptions and its result
    awaited_call  the rest of a call that has returned a coroutine
    functions   workers for functions, ``BasicBolt`` and ``Bolt``
    task_state  the state of one task, which outlives its instances
    keyed       workers for ``KeyedBolt`` and functions with a cell
    batches     ``BatchBolt``: inputs are held until their batch is full or due
    call_times  how long inputs are executed, and until they are settled; ticks that take long
    executions  batches that are executed while the next ones are collected
    threads     workers whose user code runs in threads
    observer    the seam for those who want to hear of executions
    wrapped     workers around others, and the one that notifies an observer

A task knows when something is executed, a worker knows how. A worker is given what it needs and returns what happened;
what follows from an exception is for the task to say. The worker that is in use is chosen when the bolt is assembled,
by the kind of logic and the executor; after a restart a new one is made with a new instance.
"""
