# fate: failed
from multiprocessing.shared_memory import SharedMemory

hoard = SharedMemory(create=True, size=10**9)
hoard.buf[:] = bytes(10**9)
