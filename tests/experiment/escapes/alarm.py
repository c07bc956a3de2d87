# fate: ended
import signal

signal.alarm(1)
while True:
    pass
