# fate: too_slow
import time

time.sleep(1000)
