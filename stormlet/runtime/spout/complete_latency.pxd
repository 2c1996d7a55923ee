from stormlet.core.histogram cimport Histogram
from stormlet.core.trees cimport OpenTree

cdef class CompleteLatency:
    cdef public OpenTree tree
    cdef public Histogram times
    cdef object _clock
    cdef double _began
    cdef Py_ssize_t _passes
    cdef double _share

    cpdef begin(self, OpenTree tree)
    cpdef end(self)
