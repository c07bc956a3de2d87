# fate: failed
# why: OSError
import os

while True:
    os.mkdir('deeper')
    os.chdir('deeper')
