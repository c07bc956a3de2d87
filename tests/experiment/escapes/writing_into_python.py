# fate: failed
# why: Errno
import os

open(os.__file__, 'a').write('x')
