# fate: failed
# why: PermissionError
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000) == -1:
    raise OSError(ctypes.get_errno(), 'refused')
