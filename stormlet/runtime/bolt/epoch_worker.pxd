cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.bolt.functions cimport BasicWorker
from stormlet.runtime.wire.collector cimport BoltCollector
from stormlet.runtime.wire.outbox cimport Outbox

cdef class EpochWorker(BasicWorker):
    cdef object _make
    cdef object _working
    cdef object _state
    cdef object _epoch_of
    cdef object _context

    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, crowded=list, out=BoltCollector, reached=dict)
    cpdef work(self, object tuples)
