cimport cython
from stormlet.core.settlement.prefix cimport Prefix

@cython.no_gc
cdef class Held:
    cdef readonly object id
    cdef readonly object receipt
    cdef readonly Prefix place
    cdef readonly Py_ssize_t number
    cdef readonly double since
    cdef readonly object value
    cdef readonly object name
    cdef readonly object attempt
    cdef readonly Py_ssize_t size
    cdef readonly object key
    cdef readonly object traceparent

cpdef bint is_unreadable(Held message) except -1
