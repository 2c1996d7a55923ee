cimport cython
from stormlet.core.acks cimport Acks
from stormlet.core.trees cimport OpenTree, TreeTable, prefetch_for_get, prefetch_for_put

cdef class AckerLoad:
    cdef public Py_ssize_t trees
    cdef public Py_ssize_t limit

cdef class Orphan:
    cdef public unsigned long long checksum
    cdef public object failure

cdef class Ledger:
    cdef object _trees
    cdef object _orphans
    cdef bint _activity
    cdef list _expiring
    cdef list _chosen
    cdef public list acked
    cdef public list failed
    cdef public long long settled

    @cython.locals(newest=TreeTable, orphan=Orphan, tree=OpenTree, place=Py_ssize_t)
    cpdef init(self, list trees)
    @cython.locals(newest=TreeTable, orphan=Orphan, tree=OpenTree, place=Py_ssize_t, root=cython.ulonglong)
    cpdef ack(self, Acks acks)
    @cython.locals(newest=TreeTable)
    cpdef reset_timeout(self, object root)
    cdef _ack(self, OpenTree tree)
    cdef _fail(self, OpenTree tree, object failure)
    cdef _place(self, object root)
    cdef _leave(self, object root)
    cdef Orphan _orphan(self, object root)
