# fate: ended
import fcntl
import os

for number in range(1, 16):
    try:
        fcntl.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK)
        while True:
            os.write(number, b'null' * 10_000)
    except OSError:
        pass
os._exit(0)
