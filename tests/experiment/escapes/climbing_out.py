# fate: failed
# why: FileNotFoundError
open('../../etc/hostname').read()
