cdef class One:
    cpdef Py_ssize_t pick(self, object value) except -1

cdef class _RoundRobin(One):
    cdef object _next

cdef class _ByValue(One):
    cdef dict _known
    cdef object _routes
    cdef bint _is_only

cdef class _ByKey(One):
    cdef bint _is_only
    cdef dict _known
    cdef object _routes
    cdef object _key

cdef class _LessLoaded(One):
    cdef dict _known
    cdef object _routes
    cdef list _counts
    cdef object _key
