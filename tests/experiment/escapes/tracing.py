# fate: failed
# why: PermissionError
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, 1, 0, 0) == -1:
    raise OSError(ctypes.get_errno(), 'refused')
