cdef class Activity:
    cdef public Py_ssize_t busy
    cdef object _on_calm

    cpdef begin(self)
    cpdef end(self)
