# fate: failed
# why: PermissionError
import os

hoard = [os.memfd_create('hoard') for _ in range(8)]
