# fate: failed
# why: FileNotFoundError
open('/proc/1/environ', 'rb').read()
