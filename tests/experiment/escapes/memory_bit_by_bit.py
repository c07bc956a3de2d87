# fate: failed
# why: MemoryError
hoard = []
while True:
    hoard.append(bytearray(10**6))
