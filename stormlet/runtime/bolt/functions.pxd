cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.wire.outlets cimport Outlet
from stormlet.runtime.bolt.worker cimport Worker
from stormlet.runtime.wire.collector cimport BoltCollector

# Else each look would be one into the globals, and each comparison one of objects.
cdef int ACKED, HELD, OPEN
cdef object ITERATOR, PLAIN, VALUE, To

cdef class FunctionWorker(Worker):
    cdef object _function
    cdef object _outlets
    cdef Outlet _undeclared
    cdef object _kinds

    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, crowded=list, outlet=Outlet)
    cpdef work(self, object tuples)
    cpdef begin(self, Delivered tup, BoltCollector out)
    @cython.locals(outbox=Outbox, outlet=Outlet)
    cpdef end(self, Delivered tup, object value, BoltCollector out)
    @cython.locals(crowded=list, root=cython.ulonglong)
    cdef bint _emits_more(self, Delivered tup, object result, Outlet outlet) except *
    cdef bint _emits_more_joined(self, Delivered tup, object result, object kind) except *

cdef class UndeclaredOutlet(Outlet):
    cdef object _outlets
    cdef object _plan

cdef class InstanceWorker(Worker):
    cdef public object bolt

    cpdef begin(self, Delivered tup, BoltCollector out)
    cpdef end(self, Delivered tup, object value, BoltCollector out)

cdef class BasicWorker(InstanceWorker):
    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, crowded=list, out=BoltCollector)
    cpdef work(self, object tuples)

cdef class BoltWorker(InstanceWorker):
    cdef dict _held

    @cython.locals(tup=Delivered, root=cython.ulonglong, outbox=Outbox, crowded=list, out=BoltCollector, held=dict)
    cpdef work(self, object tuples)
