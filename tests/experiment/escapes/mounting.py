# fate: failed
# why: PermissionError
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b'tmpfs', b'/work', b'tmpfs', 0, None):
    raise OSError(ctypes.get_errno(), 'refused')
