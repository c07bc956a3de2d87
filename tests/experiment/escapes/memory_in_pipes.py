# fate: failed
# why: PermissionError
import os

pipes = [os.pipe() for _ in range(6)]
