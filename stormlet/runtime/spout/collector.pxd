cimport cython
from stormlet.core.trees cimport OpenTree, new_tree
from stormlet.runtime.spout.messages cimport lineage_now, spout_message
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.spout.switches cimport Switches
from stormlet.runtime.spout.tracker cimport Tracker

cdef class SpoutOut:
    cdef object _context
    cdef object _plan
    cdef Switches _switches
    cdef object _topology
    cdef Tracker _tracker
    cdef Outbox _outbox
    cdef bint _strict
    cdef bint _keeps_all
    cdef readonly object threads

    cdef OpenTree _tree(self, object value, object message_id, object stream, object task, object lineage)
    cdef list _trees(self, object values, object message_ids, object lineages)

cdef class ReliableSpoutOut(SpoutOut):
    pass
