cdef class Inbox:
    cdef public object items # simulations have a list of their own
    cdef public Py_ssize_t capacity
    cdef public object wake_consumer
    cdef public list _waiting
