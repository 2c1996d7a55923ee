cdef class Leases:
    cdef readonly double seconds
    cdef readonly double max_hold
    cdef dict _leases

    cpdef hold(self, id, double now)
    cpdef release(self, id)
