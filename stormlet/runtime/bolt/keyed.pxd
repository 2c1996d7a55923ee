cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.bolt.functions cimport BasicWorker, FunctionWorker
from stormlet.runtime.wire.collector cimport BoltCollector
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.wire.outlets cimport Outlet

cdef class KeyedWorker(BasicWorker):
    cdef object _keyed
    cdef object _state
    cdef object _attempt
    cdef bint _overlaps

    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, crowded=list, out=BoltCollector, reached=dict)
    cpdef work(self, object tuples)

cdef class CellWorker(FunctionWorker):
    cdef object _of_cell
    cdef object _cell
    cdef object _state
    cdef object _attempt
    cdef bint _overlaps

    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, crowded=list, outlet=Outlet, reached=dict)
    cpdef work(self, object tuples)
