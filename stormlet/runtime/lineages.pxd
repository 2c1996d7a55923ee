cpdef lineage_now(object topology, object origin, object attempt)
