cdef class Intake:
    cdef public object all
    cdef object _rest

    cpdef begin(self, object tuples)
    cpdef take(self, Py_ssize_t most)
