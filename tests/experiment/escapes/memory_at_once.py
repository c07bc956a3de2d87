# fate: failed
# why: MemoryError
hoard = bytearray(10**9)
