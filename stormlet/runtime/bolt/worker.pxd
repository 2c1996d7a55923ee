from stormlet.runtime.wire.collector cimport BoltCollector
from stormlet.runtime.wire.outbox cimport Outbox

cdef class Worker:
    cdef dict __dict__
    cdef public object wiring
    cdef public object plan
    cdef public BoltCollector out
    cdef public Outbox outbox

    cpdef work(self, object tuples)
