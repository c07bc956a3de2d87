# fate: ended
import json
import os

for number in range(1, 16):
    try:
        os.write(number, json.dumps({'word': 'x', 'held': 3, 'why': None}).encode() + b'\n')
    except OSError:
        pass
os._exit(0)
