"""The tasks that own the ledgers.

::

    task        reads control messages, rotates the ledger on ticks, answers for lost tuples (law L14)
    bookkeeper  applies control messages to the ledger and gives the verdicts to the spout tasks
    holders     finds the components that hold tuples of trees that have timed out (law L14)

An acker that sleeps has read everything sent to it. A small control message is then applied at once, in the sender's
turn, because waking the acker would be most of the latency of a lone message. Else the acker is woken and applies its
queue in its own turn.
"""
