# fate: failed
# why: OSError
open('/outside', 'w').write('x')
