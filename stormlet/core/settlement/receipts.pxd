cdef class Receipts:
    cdef readonly Py_ssize_t connection
    cdef public Py_ssize_t stale
    cdef object _suffixes
    cdef object _suffix
    cdef list _earlier
    cdef bint _survive
    cdef dict _held
    cdef dict _old
    cdef dict _settled
    cdef bint _is_known

    cpdef id_of(self, name)
    cpdef bint add(self, id, receipt) except -1
    cpdef take(self, id)

cdef _id(name, suffix)
