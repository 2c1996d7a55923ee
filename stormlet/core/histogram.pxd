cimport cython

cdef extern from *:
    """
    #include <math.h>

    static double stormlet_bound_above(double seconds)
    {
        int octave;
        double fraction = frexp(seconds, &octave);
        return ldexp((double)((int)(fraction * 32.0) + 1), octave - 5);
    }
    """
    double bound_above "stormlet_bound_above" (double)

cdef class Histogram:
    cdef public dict counts
    cdef public double total

    @cython.locals(bound=cython.double)
    cpdef add(self, double seconds, long long count=*)
