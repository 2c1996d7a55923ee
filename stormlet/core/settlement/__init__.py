"""Settlement with brokers: decides what a source may tell its broker of the messages that it has got from it.

A broker is told in one of two ways. *Each*: every message by a receipt of its own, which may be a lease that runs out.
*Prefix*: only "all up to here", for each partition. No broker keeps those apart who have a message from those who had
it: a source must do so itself.

::

    prefix      one partition: the end of what is settled without a gap, in the order of delivery
    receipts    receipts of one connection, each of which settles once
    leases      receipts that run out: those to renew, and those that are lost
    credit      the number of messages that may still be asked for
    key_order   one message of each key under way at a time
    reconnects  the pauses before further attempts at a connection
"""
