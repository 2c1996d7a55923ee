cdef class AckerLoad:
    cdef public Py_ssize_t trees
    cdef public Py_ssize_t limit
