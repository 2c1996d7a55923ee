cimport cython

cdef class Prefix:
    cdef readonly object name
    cdef object _most
    cdef object _order
    cdef set _done
    cdef Py_ssize_t _first
    cdef object _front
    cdef Py_ssize_t _committed
    cdef bint _revoked

    cpdef Py_ssize_t add(self, position) except -1
    @cython.locals(first=Py_ssize_t)
    cpdef bint settle(self, Py_ssize_t number) except -1
