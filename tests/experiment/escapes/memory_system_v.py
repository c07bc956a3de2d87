# fate: failed
# why: PermissionError
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
hoard = [libc.shmget(0, 2**20, 0o1600) for _ in range(1200)]
if -1 in hoard:
    raise OSError(ctypes.get_errno(), 'refused')
