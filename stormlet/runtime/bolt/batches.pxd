cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.bolt.functions cimport BoltWorker

cdef int HELD, OPEN
cdef object PLAIN

cdef class Batch:
    cdef readonly double due
    cdef readonly list members
    cdef public object weight

cdef class BatchWorker(BoltWorker):
    cdef object _runner
    cdef object _batch_bolt

    @cython.locals(tup=Delivered, crowded=list, held=dict, batch=Batch)
    cpdef work(self, object tuples)
    cdef object _weight_of(self, object value)

@cython.locals(tup=Delivered)
cpdef _ack(object members, object out)
