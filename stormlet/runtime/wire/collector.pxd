cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.wire.outlets cimport Outlet

cdef int ACKED, FAILED, HELD, LOST
cdef object PLAIN, Tuple

cdef class Account:
    cdef public dict held
    cdef public long long acked
    cdef public long long failed

cdef class BoltCollector:
    cdef Account _account
    cdef object _loop
    cdef Outbox _outbox
    cdef dict _outlets
    cdef object _plan
    cdef object _own_trees
    cdef bint _strict
    cdef public object default_anchors
    cdef public object threads

    cdef tuple _emit_anchored(self, Outlet outlet, object value, Delivered anchor)
    @cython.locals(anchor=Delivered, are_plain=bint)
    cdef tuple _emit_joined(self, Outlet outlet, object value, list anchors)
    cdef _check_lost(self, Delivered tup, str verb)
    cdef bint _settle(self, Delivered tup, int state, str verb) except *
    cpdef ack(self, Delivered tup)
