cimport cython

cdef extern from *:
    """
    /* Another number in each thread of this process: at hand where the compiler knows how, else by a call. */
    #define stormlet_this_thread PyThread_get_thread_ident
    #if defined(__linux__) && defined(__has_builtin)
    #if __has_builtin(__builtin_thread_pointer)
    #undef stormlet_this_thread
    #define stormlet_this_thread() ((unsigned long)__builtin_thread_pointer())
    #endif
    #endif
    """
    unsigned long this_thread "stormlet_this_thread" ()

@cython.final
cdef class LoopThread:
    cdef unsigned long _ident
    cdef object _loop
    cdef public bint strict

    cdef _arrive(self)
    cdef bint is_elsewhere(self) except -1
