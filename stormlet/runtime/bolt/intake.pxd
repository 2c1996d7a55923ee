cdef class Intake:
    cdef public list all
    cdef object _rest

    cpdef begin(self, list tuples)
    cpdef take(self, Py_ssize_t most)
