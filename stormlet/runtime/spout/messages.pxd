cimport cython
from stormlet.core.trees cimport OpenTree

cpdef lineage_now(object topology, object origin, object attempt)

@cython.no_gc
cdef class Message(OpenTree):
    cdef public object value
    cdef public object stream
    cdef public object task
    cdef public object lineage
    cdef public object history

@cython.no_gc
cdef class SpoutMessage(Message):
    pass

@cython.no_gc
cdef class GivenUp(OpenTree):
    pass

@cython.no_gc
cdef class GivenAgain(OpenTree):
    pass

@cython.no_gc
cdef class HostMessage(Message):
    cdef public object tree
    cdef public object max_attempts
    cdef public dict collected

@cython.locals(message=Message)
cpdef Message kept_message(object value, object stream, object task, object lineage, object message_id)

@cython.locals(message=SpoutMessage)
cpdef SpoutMessage spout_message(object value, object stream, object task, object lineage, object message_id)
