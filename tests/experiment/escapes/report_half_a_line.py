# fate: ended
import os

for number in range(1, 16):
    try:
        os.write(number, b'null\n{"values": [["int"')
    except OSError:
        pass
os._exit(0)
