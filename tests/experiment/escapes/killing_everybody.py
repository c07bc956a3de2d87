# fate: failed
# why: ProcessLookupError
import os
import signal

os.kill(os.getppid(), signal.SIGKILL)
os.kill(-1, signal.SIGKILL)
