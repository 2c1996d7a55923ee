cimport cython

@cython.no_gc
cdef class OpenTree:
    cdef public unsigned long long checksum
    cdef public int spout
    cdef public object message_id
    cdef public object failure

@cython.locals(tree=OpenTree)
cpdef OpenTree open_tree(object message_id)
