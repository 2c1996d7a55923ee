from stormlet.core.histogram cimport Histogram

cdef class CallTimes:
    cdef public double seconds
    cdef public Histogram execute
    cdef public Histogram process
    cdef public bint follows
    cdef object _clock
    cdef object _followed
    cdef double _since

    cpdef executed(self, double seconds, Py_ssize_t count)
