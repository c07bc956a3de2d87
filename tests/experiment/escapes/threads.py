# fate: failed
# why: RuntimeError
import threading

while True:
    threading.Thread(target=print).start()
