cimport cython
from stormlet.core.state.epochs cimport Attempt
from stormlet.core.state.tables cimport Table
from stormlet.core.tuples cimport Delivered
from stormlet.model.state.slots cimport CellBase, Hand
from stormlet.runtime.bolt.functions cimport BasicWorker, FunctionWorker
from stormlet.runtime.wire.collector cimport BoltCollector
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.wire.outlets cimport Outlet

# As in functions.pxd.
cdef int ACKED, OPEN
cdef object PLAIN, whole

cdef class Calls:
    cdef object _state
    cdef tuple _columns
    cdef object _source
    cdef object _read

    @cython.locals(column=Table)
    cpdef begin(self, Delivered tup)

cdef class KeyedWorker(BasicWorker):
    cdef object _keyed
    cdef object _state
    cdef Attempt _attempt
    cdef bint _overlaps
    cdef Hand _hand
    cdef Calls _calls

    @cython.locals(tup=Delivered, root=cython.ulonglong, last=cython.ulonglong, outbox=Outbox, crowded=list, out=BoltCollector, reached=dict, calls=Calls, attempt=Attempt, hand=Hand)
    cpdef work(self, object tuples)

cdef class CellWorker(FunctionWorker):
    cdef object _of_cell
    cdef CellBase _cell
    cdef object _state
    cdef Attempt _attempt
    cdef bint _overlaps
    cdef Calls _calls

    @cython.locals(tup=Delivered, root=cython.ulonglong, last=cython.ulonglong, outbox=Outbox, crowded=list, outlet=Outlet, reached=dict, calls=Calls, attempt=Attempt, cell=CellBase)
    cpdef work(self, object tuples)
