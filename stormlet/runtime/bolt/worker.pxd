from stormlet.core.tuples cimport Delivered
from stormlet.runtime.wire.collector cimport BoltCollector
from stormlet.runtime.wire.outbox cimport Outbox

cdef class Worker:
    cdef dict __dict__
    cdef public object wiring
    cdef public object plan
    cdef public BoltCollector out
    cdef public Outbox outbox

    cdef ack_rootless(self, Delivered tup)
    cpdef work(self, object tuples)
    cpdef bint goes_quickly(self, Delivered tup) except *
    cpdef begin(self, Delivered tup, BoltCollector out)
    cpdef end(self, Delivered tup, object value, BoltCollector out)
