cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.collectors cimport BoltCollector
from stormlet.runtime.outbox cimport Outbox
from stormlet.runtime.workers cimport Worker

cdef class InstanceWorker(Worker):
    cdef public object bolt

cdef class BasicWorker(InstanceWorker):
    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, crowded=list, out=BoltCollector)
    cpdef work(self, object tuples)

cdef class BoltWorker(InstanceWorker):
    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, crowded=list, out=BoltCollector, held=dict)
    cpdef work(self, object tuples)
