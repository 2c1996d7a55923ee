"""ACTS. The asyncio shells around :mod:`stormlet.core`: coroutines, queues, timers.

The rooms, from the ground up; imports go down only, those for the type checker too (``tests/test_layers.py``)::

    epoch          the open epoch, as all tasks of a run share it
    occupation     the time shares of a task, by the steps of its coroutines
    other_threads  what the loop does for threads that wait for the interpreter
    wire/          inbox, outbox, outlets, collector: how a tuple gets from one task to the next
    slices         the turns that tasks take on the loop, and how many of them are busy
    usercode       calls of user code: what they raised, contexts, cancellation, kinds of results
    failure_log    one log line for each distinct failure, then counts
    tree           the handle of a message that the host has emitted
    tracing        messages that are traced, as those see it who trace them
    context        shared by all tasks of a run: loop, plan, seed, clock, slices
    dead_letters   the sink of what was given up, and the file
    slow_code      stacks of user code that holds the loop, a restart or the end
    life           the state of a task, its coroutine, and the cancellations that reach it
    task           one coroutine that works, dies, is revived, ends
    acker/         the tasks that own the ledgers
    bolt/          bolt tasks and the workers that call user code for them
    spout/         spout tasks, their sources, and the account of their messages
    tasks          all tasks of a run, and the search for a tree among them
    slow_ends      the log of what does not end, and what it waits for
    explain/       why a tree is open
    hooks/         what users hear of the work of tasks
    epochs/        messages that belong to epochs, and what becomes durable with these
    run/           a run as a whole: assembly, start, drain, end, and the handle that the host holds

The way of a tuple: a source (:mod:`stormlet.runtime.spout.feeds`) gives a value to the tracker
(:mod:`stormlet.runtime.spout.tracker`), which makes a tree of it and hands it to an outlet
(:mod:`stormlet.runtime.wire.outlets`). The outlet chooses consumers and appends to their inboxes. What the ackers must
know gathers in the outbox (:mod:`stormlet.runtime.wire.outbox`) and is posted when the task's turn ends. A bolt task
takes its inbox as a batch, its worker calls user code, the collector notes emits and acks in the outbox. The acker's
ledger settles the tree and appends it to the outcomes of its spout task, which reports to the user, replays or gives
up.
"""
