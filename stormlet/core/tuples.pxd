cimport cython

cdef extern from "Python.h":
    bint is_tracked "PyObject_GC_IsTracked" (object thing)
    void untrack "PyObject_GC_UnTrack" (object thing)

cdef bint IS_COMPILED

cdef class Delivered:
    cdef public object value
    cdef public object source
    cdef public object lineage
    cdef public unsigned long long root
    cdef public unsigned long long edge
    cdef public int state

cdef class JoinedTuple(Delivered):
    cdef public object by_root

@cython.locals(tup=Delivered)
cpdef Delivered plain_tuple(object value, object source, object lineage, unsigned long long root, unsigned long long edge)
