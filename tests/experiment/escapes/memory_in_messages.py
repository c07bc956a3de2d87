# fate: failed
# why: PermissionError
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
if libc.msgget(0, 0o1600) == -1:
    raise OSError(ctypes.get_errno(), 'refused')
