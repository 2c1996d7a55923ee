cimport cython
from stormlet.core.state.value_table cimport ValueTable

# Else each look would be one into the globals.
cdef object UNSET

cdef class Hand:
    cdef public object key
    cdef public dict tables
    cdef public object timers
    cdef public ValueTable only

cdef class Holder:
    cdef public Hand _hand

@cython.locals(hand=Hand)
cpdef Hand hand_of(Holder bolt)
@cython.locals(hand=Hand)
cpdef Hand full_hand(Holder bolt)

cdef class KeySlot:
    pass

cdef class Slot:
    cdef public object declaration
    cdef public object name

cdef class ValueSlot(Slot):
    @cython.locals(hand=Hand, table=ValueTable)
    cdef _read(self, object bolt)
    @cython.locals(hand=Hand, table=ValueTable)
    cdef _write(self, object bolt, object value)

cdef class ViewSlot(Slot):
    cdef public object view

cdef class CellBase:
    cdef public object key
    cdef public object now
    cdef public object declaration
    cdef public ValueTable table
