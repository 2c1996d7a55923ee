cdef class Inbox:
    cdef public list items
    cdef public Py_ssize_t capacity
    cdef public object wake_consumer
    cdef public list _waiting
