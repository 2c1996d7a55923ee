cimport cython
from stormlet.connect.driver.held cimport Held

cdef class Buffer:
    cdef readonly Py_ssize_t bytes
    cdef readonly bint is_ordered
    cdef readonly Py_ssize_t unreadable
    cdef object _ready
    cdef dict _begun
    cdef object _order

    cpdef add(self, Held message)
    @cython.locals(each=Held)
    cdef list _begin(self, list taken)
    cpdef bint over(self, Held held) except -1
