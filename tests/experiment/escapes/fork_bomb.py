# fate: failed
# why: PermissionError
import os

while True:
    os.fork()
