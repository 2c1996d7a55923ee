cimport cython

cdef class Histogram:
    cdef public dict counts
    cdef public double total

    @cython.locals(bound=cython.double, fraction=cython.double, octave=cython.int)
    cpdef add(self, double seconds, long long count=*)
