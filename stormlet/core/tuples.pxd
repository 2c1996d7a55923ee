cdef class Delivered:
    cdef public object value
    cdef public object source
    cdef public object lineage
    cdef public object root
    cdef public unsigned long long edge
    cdef public int state
