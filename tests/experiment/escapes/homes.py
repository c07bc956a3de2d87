# fate: failed
# why: FileNotFoundError
import os

os.listdir('/home') + os.listdir('/root')
