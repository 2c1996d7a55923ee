cimport cython

cdef class Orphan:
    cdef public object checksum
    cdef public object failure

cdef class Ledger:
    cdef object _trees
    cdef object _orphans
    cdef bint _activity
    cdef list _expiring
    cdef public list acked
    cdef public list failed
    cdef public Py_ssize_t settled

    @cython.locals(newest=dict)
    cpdef init(self, object inits)
    @cython.locals(newest=dict, orphan=Orphan)
    cpdef ack(self, object deltas)
    cdef _ack(self, object tree)
    cdef _fail(self, object tree, object failure)
    cdef _place(self, object root)
    cdef _leave(self, object root)
    cdef Orphan _orphan(self, object root)
