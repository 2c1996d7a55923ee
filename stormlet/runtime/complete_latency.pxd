cdef class CompleteLatency:
    cdef public object tree
    cdef public double seconds
    cdef public Py_ssize_t samples
    cdef object _clock
    cdef double _began

    cpdef begin(self, object tree)
    cpdef end(self)
