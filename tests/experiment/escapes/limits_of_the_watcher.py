# fate: failed
# why: PermissionError
import resource

resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))
