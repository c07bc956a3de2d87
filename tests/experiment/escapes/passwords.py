# fate: failed
# why: FileNotFoundError
open('/etc/passwd').read()
