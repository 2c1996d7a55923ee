cimport cython
from stormlet.core.ledger cimport AckerLoad
from stormlet.core.ledger cimport Ledger
from stormlet.core.trees cimport OpenTree
from stormlet.runtime.slices cimport Activity
from stormlet.runtime.wire.outbox cimport Control

cdef class Verdicts:
    cdef public object trees
    cdef public object notify

cdef class Bookkeeper:
    cdef Activity _activity
    cdef public Ledger ledger
    cdef public AckerLoad load
    cdef public object verdicts
    cdef public long long applied
    cdef public long long acked
    cdef public long long failed

    @cython.locals(ledger=Ledger)
    cpdef Py_ssize_t apply(self, Control control) except -1
    cpdef apply_at_once(self, Control control)
    @cython.locals(ledger=Ledger, tree=OpenTree, spout=int, only=Verdicts, of_spout=Verdicts, reached=dict)
    cpdef give_verdicts(self)
