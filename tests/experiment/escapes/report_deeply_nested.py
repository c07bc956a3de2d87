# fate: ended
import os

for number in range(1, 16):
    try:
        os.write(number, b'[' * 60_000 + b'\n')
    except OSError:
        pass
os._exit(0)
