# fate: failed
# why: PermissionError
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)

# the x32 numbers of fork, clone and memfd_create
if {libc.syscall(0x40000000 | number, 0, 0, 0, 0, 0) for number in (57, 56, 319)} == {-1}:
    raise OSError(ctypes.get_errno(), 'refused')
