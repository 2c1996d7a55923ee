from stormlet.runtime.wire.outbox cimport Outbox

cdef class Worker:
    cdef dict __dict__
    cdef public object desk
    cdef public Outbox outbox

    cpdef work(self, object tuples)
