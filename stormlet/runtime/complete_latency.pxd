from stormlet.core.open_tree cimport OpenTree

cdef class CompleteLatency:
    cdef public OpenTree tree
    cdef public double seconds
    cdef public long long samples
    cdef object _clock
    cdef double _began

    cpdef begin(self, OpenTree tree)
    cpdef end(self)
