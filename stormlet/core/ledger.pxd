cimport cython

cdef class AckerLoad:
    cdef public Py_ssize_t trees
    cdef public Py_ssize_t limit

@cython.no_gc
cdef class OpenTree:
    cdef public unsigned long long checksum
    cdef public int spout
    cdef public object message_id
    cdef public object failure

@cython.locals(tree=OpenTree)
cpdef OpenTree new_tree(object message_id)

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

    @cython.locals(newest=dict, orphan=Orphan, tree=OpenTree)
    cpdef init(self, object inits)
    @cython.locals(newest=dict, orphan=Orphan, tree=OpenTree)
    cpdef ack(self, object deltas)
    cdef _ack(self, OpenTree tree)
    cdef _fail(self, OpenTree tree, object failure)
    cdef _place(self, object root)
    cdef _leave(self, object root)
    cdef Orphan _orphan(self, object root)
