cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.bolt.functions cimport InstanceWorker
from stormlet.runtime.wire.outbox cimport Outbox

cdef class CommitterWorker(InstanceWorker):
    cdef object _committer
    cdef object _outgoing
    cdef object _attempt

    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, reached=dict)
    cpdef work(self, object tuples)
