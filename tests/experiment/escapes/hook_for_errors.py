# fate: failed
# why: ValueError
import os
import sys

sys.excepthook = lambda *_: os._exit(0)
raise ValueError
