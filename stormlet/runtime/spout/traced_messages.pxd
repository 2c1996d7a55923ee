from stormlet.core.trees cimport OpenTree

cdef class TracedMessages:
    cdef object _tracing
    cdef object _plan
    cdef object _open
    cdef long long _to_pass_over

    cpdef begin(self, OpenTree tree, object stream, object lineage)
    cpdef settled(self, OpenTree tree)
