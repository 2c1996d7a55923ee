from stormlet.core.state.codecs cimport Keys, Values

cdef class Table:
    cdef public object where
    cdef public object declared
    cdef public Keys keys
    cdef public Values values
    cdef public bint immutable
    cdef public bint timed
    cdef public double now
    cdef public dict written
    cdef public dict renewed
    cdef public bint touched
    cdef double _ttl

    cpdef bint expired(self, object entry) except *
    cpdef time_of(self, object entry)
    cpdef fit_key(self, object key)
    cpdef fit_value(self, object key, object value)
