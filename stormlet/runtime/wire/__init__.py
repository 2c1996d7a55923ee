"""The way of tuples and control messages from one task to another. Knows no task.

::

    inbox         the bounded queue of a bolt task (law B6)
    room_waits    the time for which one component waits for room in the queues of another
    outbox        control messages for the ackers, gathered while a task has its turn (law F1)
    outlets       one for each stream of a task: chooses consumers, makes tuples, delivers them
    own_trees     trees of emits that name no anchor, where messages belong to epochs
    collector     what a bolt's user code emits, acks and fails with
    thread_calls  the same from other threads (law F3)
    loop_thread   refuses calls from threads that are not the loop's

An emit ends in ``Outlet.deliver``, which appends to inboxes and returns the XOR of the new edges. The task that emits
adds this to its outbox. Nothing is sent to an acker before the task's turn ends, so that one message per turn and acker
carries everything; a consumer can therefore ack a tuple before the ledger has heard of it, which the ledger allows
(law L3).
"""
