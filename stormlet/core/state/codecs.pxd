cdef class Keys:
    cdef public object kind
    cdef public object words
    cdef object _read
    cdef bint _ints
    cdef bint _texts

    cpdef fit(self, object key)

cdef class Values:
    cdef public object kind
    cdef public object words
    cdef public bint immutable
    cdef public object upgrade
    cdef object _read
    cdef object _class
    cdef bint _whole
    cdef bint _ints
    cdef bint _texts

    cpdef bint fits(self, object value) except *
    cpdef fit(self, object value)
    cpdef keep(self, object value)
    cpdef open(self, object kept)
