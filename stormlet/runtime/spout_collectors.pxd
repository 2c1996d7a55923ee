cimport cython
from stormlet.core.open_tree cimport OpenTree, open_tree
from stormlet.runtime.lineages cimport lineage_now
from stormlet.runtime.outbox cimport Outbox
from stormlet.runtime.tracker cimport Tracker

cdef class SpoutOut:
    cdef object _task
    cdef object _topology
    cdef Tracker _tracker
    cdef Outbox _outbox
    cdef bint _strict

    cdef OpenTree _tree(self, object value, object message_id, object stream, object task, object lineage)
    cdef list _trees(self, object values, object message_ids, object lineages)

cdef class ReliableSpoutOut(SpoutOut):
    pass
